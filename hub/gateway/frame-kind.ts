import type { AgentFrame } from "../../shared/protocol/frames.ts";
import type { NodeKind } from "./budgets.ts";

/**
 * The budget to which the hub charges each type of frame. The frame `hello` has no budget of its own (null), because the hub has already charged the
 * agent's new session to a budget.
 */
const KINDS: Readonly<Record<AgentFrame["type"], NodeKind | null>> = {
  hello: null,
  heartbeat: "heartbeat",
  readiness: "readiness",
  inventory: "inventory",
  "task.progress": "progress",
  "task.ack": "task",
  "task.rejected": "task",
  "task.result": "task",
  "task.cancelled": "task",
  "task.not_cancellable": "task",
  "trust.known": "task",
};

export const kindOf = (frame: AgentFrame): NodeKind | null => KINDS[frame.type];
