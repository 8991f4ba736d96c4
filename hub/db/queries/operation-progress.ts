import type { Workflow } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { recordDomainEvent } from "./domain-events.ts";
import type { StageEventWrite } from "./workflow-events.ts";

/** The shortest time between two progress events of one operation that only report a new reason to wait or a task's progress. */
export const TELL_EVERY_SECONDS = 5;

/**
 * Says whether a change of an operation's progress writes a progress event now, later or not at all. Every stage event but `waiting` writes a
 * progress event at once, because an operation has few stages and waits before it tries a stage again. A stage event `waiting` writes a progress
 * event only if the operation's last progress event is at least `TELL_EVERY_SECONDS` old. If the hub holds a progress event back, a later change of
 * the operation writes an event with the state of that later time.
 */
export function tellingOf(
  row: { readonly now: Date; readonly toldAt: Date | null; readonly untold: boolean },
  events: readonly StageEventWrite[],
): "tell" | "later" | "nothing" {
  if (events.some(({ status }) => status !== "waiting")) return "tell";
  if (events.length === 0 && !row.untold) return "nothing";
  const since = row.toldAt === null ? Number.POSITIVE_INFINITY : row.now.getTime() - row.toldAt.getTime();
  return since >= TELL_EVERY_SECONDS * 1000 ? "tell" : "later";
}

type Told = Pick<
  Workflow,
  "id" | "kind" | "batchId" | "siteId" | "input" | "state" | "status" | "stage" | "attempt" | "waitReason"
>;

const textOf = (value: unknown, key: string): string | undefined => {
  const found = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  return typeof found === "string" ? found : undefined;
};

export async function recordProgressEvent(tx: Tx, row: Told): Promise<void> {
  const nodeId = textOf(row.input, "node_id") ?? textOf(row.state, "node_id");
  const hostname = textOf(row.input, "hostname");
  await recordDomainEvent(tx, {
    type: "operation.progressed",
    subject: `${row.kind === "onboard" ? "onboardings" : "decommissions"}/${row.id}`,
    data: {
      operation_id: row.id,
      batch_id: row.batchId,
      site_id: row.siteId,
      ...(nodeId === undefined ? {} : { node_id: nodeId }),
      ...(hostname === undefined ? {} : { hostname }),
      status: row.status,
      stage: row.stage,
      attempt: row.attempt,
      wait_reason: row.waitReason,
    },
  });
}
