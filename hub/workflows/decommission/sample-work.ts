import { randomBytes } from "node:crypto";
import { type Evidence, failure } from "../../../shared/failures.ts";
import type { Task } from "../../db/schema/index.ts";
import type { DecommissionContext } from "./decommission-context.ts";

/**
 * The seconds that the agent has to read the random blocks of all disks. The agent's read of the random blocks takes seconds on a working disk, and
 * two minutes on a broken disk.
 */
const SAMPLE_SECONDS = 3_600;

/** Returns a new random number for the seed or the key of a sample of disk blocks, as hexadecimal digits. */
export const newRandom = (): string => randomBytes(32).toString("hex");

/** What two orders to read random disk blocks have in common: the order before the release, and the order after the deploy. */
export const SAMPLE = {
  type: "node.sample_disks",
  undoneBy: null,
  workSeconds: () => SAMPLE_SECONDS,
  failed: (context: DecommissionContext, task: Task, evidence: Evidence) =>
    failure(
      "upstream_transient",
      "cleaning_failed",
      `The disks of ${context.node.hostname} were not read: ${task.errorMessage ?? `the task is ${task.state}`}`,
      evidence,
    ),
} as const;
