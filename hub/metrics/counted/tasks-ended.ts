import { TASK_STATES } from "../../../shared/task-state.ts";
import { counter, upTo } from "./family.ts";

export const taskDeliveriesEnded = counter({
  name: "muster_task_deliveries_ended_total",
  help: "Deliveries of tasks to agents that ended, by task type and by the state that the task has since then; queued means that the hub delivers it again.",
  labels: { type: upTo(64), state: TASK_STATES },
});
