import type { RemovalLimits } from "../system/confined-removal.ts";
import type { Revocation } from "./tenant.ts";

/**
 * How long all removals of one cleaning step may take together. A second run of the task `allocation.revoke_user` continues an unfinished removal.
 */
const REMOVAL_MS = 30 * 60_000;

/**
 * The limits of all removals of one cleaning step. A step that removes several paths calls `removalLimits` once and uses the result for all paths.
 */
export const removalLimits = ({ signal, alive }: Revocation): RemovalLimits => ({
  signal,
  deadline: Date.now() + REMOVAL_MS,
  onProgress: alive,
});
