import type { RemovalLimits } from "../system/confined-removal.ts";
import type { Revocation } from "./tenant.ts";

/** How long the removals of one step may take together. A second run of the task continues the removal. */
const REMOVAL_MS = 30 * 60_000;

/** The limits of a step. A step that removes several paths uses the same limits for all of them. */
export const removalLimits = ({ signal, alive }: Revocation): RemovalLimits => ({
  signal,
  deadline: Date.now() + REMOVAL_MS,
  onProgress: alive,
});
