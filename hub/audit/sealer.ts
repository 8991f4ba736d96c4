import type { Log } from "../../shared/log.ts";
import { chainHead, firstSeal, hasUnsealed, type SealFrom, sealAt, sealNext } from "../db/queries/audit-chain.ts";
import type { Db, InTx } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";
import type { KeptHeads } from "./kept-heads.ts";

const EVERY_MS = 1_000;
/**
 * Each second, the hub searches for audit entries without a seal among those since this many last seals, because a transaction may commit late; each
 * sixtieth search goes further back.
 */
const LOOK_BACK = 1_000;
const LOOK_FAR_BACK = 100_000;

export interface SealerOptions {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
  readonly heads: KeptHeads;
}

/** The first search for audit entries without a seal after a hub's start reads the whole table. */
const lookBackOf = (turn: number): number | null => (turn === 0 ? null : turn % 60 === 0 ? LOOK_FAR_BACK : LOOK_BACK);

/** Seals all audit entries that have no seal, and stores the end of the audit chain in the hub's state folder. */
export async function sealAll({ db, inTx, log, heads }: SealerOptions, lookBack: number | null): Promise<void> {
  const begin: SealFrom = { lookBack };
  if (await hasUnsealed(db, begin))
    for (let from: SealFrom | null = begin; from !== null; ) {
      const next: SealFrom = from;
      from = await inTx((tx) => sealNext(tx, next));
    }
  const lost = await heads.keep(await chainHead(db), async (kept) => {
    const seal = await sealAt(db, kept.sequence);
    if (seal !== undefined) return seal.entry_sha256 === kept.entry_sha256;
    const first = await firstSeal(db);
    return first !== undefined && kept.sequence < first.sequence;
  });
  if (lost !== null)
    log.error("the audit chain lost entries that it had: run muster audit verify", {
      kept_sequence: lost.sequence,
      kept_entry_sha256: lost.entry_sha256,
    });
}

/** Seals new audit entries about once a second. Of several hubs, only one at a time seals audit entries. */
export function startSealer(options: SealerOptions): { close(): Promise<void> } {
  let turn = 0;
  return periodically({
    everyMs: EVERY_MS,
    log: options.log,
    failed: "audit entries could not be sealed",
    turn: async () => {
      await sealAll(options, lookBackOf(turn));
      turn += 1;
    },
  });
}
