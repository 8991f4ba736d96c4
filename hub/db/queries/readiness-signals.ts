import type { NodeId } from "../../../shared/ids.ts";
import type { ReadinessSource } from "../../../shared/readiness.ts";
import { sql } from "../orm.ts";
import { readinessSignals } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

/** Keeps a node's newest signals of one source. One that was forgotten and comes again is a new one. */
export async function forgetOldSignals(tx: Tx, nodeId: NodeId, source: ReadinessSource, keep: number): Promise<void> {
  await tx.execute(sql`
    delete from ${readinessSignals} where id in (
      select s.id from ${readinessSignals} s where s.node_id = ${nodeId} and s.source = ${source}
      order by s.received_at desc, s.id offset ${keep})`);
}
