import type { Log } from "../../shared/log.ts";
import { type KeptHead, KeptHeads } from "../audit/kept-heads.ts";
import { startSealer } from "../audit/sealer.ts";
import type { Db, InTx } from "../db/tx.ts";

interface AuditParts {
  readonly config: { readonly stateDir: string };
  readonly database: { readonly db: Db; readonly inTx: InTx };
  readonly log: Log;
}

/** Starts the part of a hub that seals audit entries. The result lists the ends of the audit chain that the hub keeps in its state folder. */
export async function startAudit(
  { config: { stateDir }, database: { db, inTx }, log }: AuditParts,
  closers: (() => Promise<void> | void)[],
): Promise<() => Promise<readonly KeptHead[]>> {
  const heads = await KeptHeads.open(stateDir);
  const sealer = startSealer({ db, inTx, heads, log: log.with({ part: "audit" }) });
  closers.push(() => sealer.close());
  return () => heads.list();
}
