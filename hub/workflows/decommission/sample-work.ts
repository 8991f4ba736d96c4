import { randomBytes } from "node:crypto";
import { type Evidence, failure } from "../../../shared/failures.ts";
import type { Task } from "../../db/schema/index.ts";
import type { DecommissionContext } from "./decommission-context.ts";

/** How long the agent has to read the random blocks of all disks. A disk takes seconds, and a broken disk two minutes. */
const SAMPLE_SECONDS = 3_600;

/** A new random number for the seed or the key of a sample, in hexadecimal digits. */
export const newRandom = (): string => randomBytes(32).toString("hex");

/** What the two orders to read random blocks of the disks have in common, the one before the release and the one after the deploy. */
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
