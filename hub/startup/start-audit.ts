import { hostname } from "node:os";
import type { Log } from "../../shared/log.ts";
import { startChecker } from "../audit/check-chain.ts";
import { type Sink, startExport } from "../audit/export.ts";
import { openAuditFile } from "../audit/file-sink.ts";
import { type KeptHead, KeptHeads } from "../audit/kept-heads.ts";
import { startSealer } from "../audit/sealer.ts";
import { openSyslog, syslogTarget } from "../audit/syslog-sink.ts";
import type { Db, InTx } from "../db/tx.ts";

interface AuditParts {
  readonly config: {
    readonly stateDir: string;
    readonly auditExport: { readonly file: string | null; readonly syslog: string | null };
  };
  readonly database: { readonly db: Db; readonly inTx: InTx };
  readonly hubId: string;
  readonly log: Log;
}

interface Destination {
  readonly destination: string;
  readonly sink: Sink;
}

export interface AuditFacts {
  /** The heads of the audit chain (its last entry at several times) that the hub keeps in its state folder. */
  readonly auditHeads: () => Promise<readonly KeptHead[]>;
  /** The number of audit chain heads in the state folder that were missing from the audit chain at its last check. */
  readonly auditHeadsLost: () => number;
}

/** Starts the parts of a hub that seal, check and export audit entries. */
export async function startAudit(
  { config, database: { db, inTx }, hubId, log: hubLog }: AuditParts,
  closers: (() => Promise<void> | void)[],
): Promise<AuditFacts> {
  const log = hubLog.with({ part: "audit" });
  const heads = await KeptHeads.open(config.stateDir);
  const sealer = startSealer({ db, inTx, heads, log });
  closers.push(() => sealer.close());
  const checker = startChecker({ db, inTx, heads, log });
  closers.push(() => checker.close());
  for (const one of destinationsOf(config.auditExport)) {
    const running = startExport({ db, hubId, log, ...one });
    closers.push(() => running.close());
  }
  return { auditHeads: () => heads.list(), auditHeadsLost: checker.lostHeads };
}

/** An audit file or syslog socket on one machine is a destination of its own; a syslog receiver in the network is one destination for all hubs. */
function destinationsOf({ file, syslog }: AuditParts["config"]["auditExport"]): Destination[] {
  const destinations: Destination[] = [];
  if (file !== null) destinations.push({ destination: `file:${hostname()}:${file}`, sink: openAuditFile(file) });
  const target = syslog === null ? null : syslogTarget(syslog);
  if (target !== null) {
    const destination = target.by === "unix" ? `syslog:${hostname()}:${target.path}` : `syslog:${syslog}`;
    destinations.push({ destination, sink: openSyslog(target) });
  }
  return destinations;
}
