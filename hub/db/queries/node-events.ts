import type { NodeId } from "../../../shared/ids.ts";
import { and, eq, sql } from "../orm.ts";
import { type NodeEventRow, nodeEvents } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

export interface NewNodeEvent {
  readonly nodeId: NodeId;
  readonly type: NodeEventRow["type"];
  readonly owner: string;
  readonly message: string;
  /** Never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly fromStatus?: NodeEventRow["fromStatus"];
  readonly toStatus?: NodeEventRow["toStatus"];
}

export async function recordNodeEvent(tx: Tx, event: NewNodeEvent): Promise<void> {
  await tx.insert(nodeEvents).values(event);
}

/** Was a session of this boot opened before in the node's provisioning of that generation? */
export async function knowsBoot(tx: Tx, nodeId: NodeId, generation: number, bootId: string): Promise<boolean> {
  const rows = await tx
    .select({ id: nodeEvents.id })
    .from(nodeEvents)
    .where(
      and(
        eq(nodeEvents.nodeId, nodeId),
        eq(nodeEvents.type, "session_opened"),
        sql`${nodeEvents.details} @> ${JSON.stringify({ boot_id: bootId, generation })}::jsonb`,
      ),
    )
    .limit(1);
  return rows.length > 0;
}
