import type { SealedEntry } from "../../shared/audit-chain.ts";
import type { Log } from "../../shared/log.ts";
import { readChain } from "../db/queries/audit-chain.ts";
import { advanceExport, claimExport, endExport, isExportBehind } from "../db/queries/audit-exports.ts";
import type { Db } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";

/** A place outside the database to which the hub exports audit entries. */
export interface Sink {
  /** Resolves when the destination has stored the audit entries safely. */
  write(entries: readonly SealedEntry[]): Promise<void>;
  close(): Promise<void>;
}

export interface ExportOptions {
  readonly db: Db;
  readonly log: Log;
  readonly hubId: string;
  /** The name of the destination, under which all hubs share one position in the audit chain. */
  readonly destination: string;
  readonly sink: Sink;
}

const EVERY_MS = 1_000;
const AT_ONCE = 200;
/**
 * The time in milliseconds between a failed export of audit entries and the next attempt, so that an unreachable receiver does not fill the hub's
 * log.
 */
const REST_MS = 10_000;

/**
 * Exports the entries after the destination's position. A destination's position in the audit chain moves only after the destination has stored the
 * entries safely, so an entry may be exported twice and is never lost. If several hubs export audit entries to the same destination, a lease lets
 * only one export at a time. A hub that is stopping exports no further part of the audit chain.
 */
export async function exportNext(
  { db, hubId, destination, sink }: ExportOptions,
  stopped: () => boolean = () => false,
): Promise<number> {
  let exported = 0;
  while (!stopped() && (await isExportBehind(db, destination))) {
    const position = await claimExport(db, { destination, hubId });
    if (position === null) return exported;
    const seals = await readChain(db, { after: position, limit: AT_ONCE });
    const last = seals.at(-1);
    if (last === undefined) return exported;
    const entries = seals.flatMap(({ entry }) => (entry === null ? [] : [entry]));
    if (entries.length > 0) await sink.write(entries);
    if (!(await advanceExport(db, { destination, hubId, from: position, to: last.sequence }))) return exported;
    exported += entries.length;
  }
  return exported;
}

/** Exports new audit entries about a second after they are sealed. */
export function startExport(options: ExportOptions, restMs = REST_MS): { close(): Promise<void> } {
  const { db, log, hubId, destination, sink } = options;
  let restUntil = 0;
  let isStopped = false;
  const loop = periodically({
    everyMs: EVERY_MS,
    log,
    failed: `audit entries could not be exported to ${destination}; the hub tries again`,
    turn: async () => {
      if (performance.now() < restUntil) return;
      restUntil = performance.now() + restMs;
      await exportNext(options, () => isStopped);
      restUntil = 0;
    },
  });
  return {
    close: async () => {
      isStopped = true;
      await loop.close();
      await sink.close();
      await endExport(db, { destination, hubId });
    },
  };
}
