import { failure } from "../../../shared/failures.ts";
import type { AgentWork } from "./agent-work.ts";

/** The agent has `UNDRAIN_SECONDS` to reopen the host to users after a cleaning. The undrain itself takes seconds. */
const UNDRAIN_SECONDS = 900;

/**
 * The task `node.undrain` lets users log in again when the host has been cleaned after a tenant. If an operation drains its host a second time, the
 * hub ignores the task `node.undrain` that followed the first drain.
 */
export const UNDRAIN: AgentWork<"node.undrain"> = {
  type: "node.undrain",
  undoneBy: "node.drain",
  input: (context) => ({ reason: context.decommission.reason }),
  workSeconds: () => UNDRAIN_SECONDS,
  isAskedFor: () => true,
  failed: (context, task, evidence) =>
    failure(
      "upstream_transient",
      "drain_failed",
      `Host ${context.node.hostname} was not opened again: ${task.errorMessage ?? `the task is ${task.state}`}`,
      evidence,
    ),
  waitsFor: () => "The agent to let users log in again",
};
