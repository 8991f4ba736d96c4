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
  /** Details of a node's event never include a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly fromStatus?: NodeEventRow["fromStatus"];
  readonly toStatus?: NodeEventRow["toStatus"];
}

const KEPT = KEPT_OF_A_NODE.hostEvents satisfies Partial<Record<NodeEventRow["type"], number>>;
export type HostEvent = keyof typeof KEPT;
export const HOST_EVENTS = Object.keys(KEPT) as HostEvent[];
/** The host can cause a node's status change only by its heartbeats, so only changes of the owner `heartbeat` count as the host's. */
const OF_HOST = sql`(e.type <> 'status_changed' or e.owner = 'heartbeat')`;

export const recordNodeEvent = (tx: Tx, event: NewNodeEvent): Promise<void> => recordNodeEvents(tx, [event]);

/** For each event type that hosts can cause, the database keeps only a node's newest events. */
export async function recordNodeEvents(tx: Tx, events: readonly NewNodeEvent[]): Promise<void> {
  if (events.length === 0) return;
  await tx.insert(nodeEvents).values([...events]);
  for (const type of HOST_EVENTS) {
    const of = events.filter(
      (event) => event.type === type && (type !== "status_changed" || event.owner === "heartbeat"),
    );
    if (of.length === 0) continue;
    const ids = sql.param([...new Set(of.map(({ nodeId }) => nodeId))]);
    await tx.execute(sql`
      delete from ${nodeEvents} e using unnest(${ids}::uuid[]) as of(id), lateral (
        select e.id from ${nodeEvents} e where e.node_id = of.id and e.type = ${type} and ${OF_HOST}
        order by e.id desc offset ${KEPT[type]} limit 1) as last
      where e.node_id = of.id and e.type = ${type} and ${OF_HOST} and e.id <= last.id`);
  }
}

/** True if the node had an agent session with the given boot id in the given generation. */
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
