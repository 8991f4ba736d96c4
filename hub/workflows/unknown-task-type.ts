/** The error of a task whose type the agent does not know, because the agent is older than the hub. */
export const UNKNOWN_TYPE = "order_rejected_unsupported_task";
