import type { NodeId } from "../../../shared/ids.ts";
import { KEPT_OF_A_NODE } from "../kept.ts";
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

/** What a host can bring about by itself, as often as it likes. */
export const HOST_EVENTS = [
  "enrolled",
  "certificate_renewed",
  "session_opened",
  "duplicate_identity",
  "agent_noisy",
] as const satisfies readonly NodeEventRow["type"][];

/** Of what a host brings about the newest are kept. */
export async function recordNodeEvent(tx: Tx, event: NewNodeEvent): Promise<void> {
  await tx.insert(nodeEvents).values(event);
  if (!(HOST_EVENTS as readonly string[]).includes(event.type)) return;
  const ofHost = sql`e.node_id = ${event.nodeId} and e.type = any(${sql.param([...HOST_EVENTS])}::text[])`;
  await tx.execute(sql`
    delete from ${nodeEvents} e where ${ofHost} and e.id <= (
      select e.id from ${nodeEvents} e where ${ofHost} order by e.id desc offset ${KEPT_OF_A_NODE.hostEvents} limit 1)`);
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

/** True when the node has had an event of this type within the last `minutes`. */
export async function hadRecently(
  tx: Tx,
  nodeId: NodeId,
  type: NodeEventRow["type"],
  minutes: number,
): Promise<boolean> {
  const rows = await tx
    .select({ id: nodeEvents.id })
    .from(nodeEvents)
    .where(
      and(
        eq(nodeEvents.nodeId, nodeId),
        eq(nodeEvents.type, type),
        sql`${nodeEvents.occurredAt} > now() - make_interval(mins => ${minutes})`,
      ),
    )
    .limit(1);
  return rows.length > 0;
}
