import type { RemovalLimits } from "../system/confined-removal.ts";
import type { Revocation } from "./tenant.ts";

/** How long the removal of one folder may take. A second run of the task continues the removal. */
const REMOVAL_MS = 30 * 60_000;

export const removalLimits = ({ signal, alive }: Revocation): RemovalLimits => ({
  signal,
  deadline: Date.now() + REMOVAL_MS,
  onProgress: alive,
});
