import type { AgentFrame } from "../../shared/protocol/frames.ts";
import type { NodeKind } from "./budgets.ts";

/** The budget to which the hub charges each type of frame. It is null for a hello message, because the hub has already charged the session. */
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
