import type { RemovalLimits } from "../system/confined-removal.ts";
import type { Revocation } from "./tenant.ts";

/**
 * How many milliseconds all removals of one cleaning step may take together. A second run of `allocation.revoke_user` continues a removal of files
 * that took too long.
 */
const REMOVAL_MS = 30 * 60_000;

export const removalLimits = ({ signal, alive }: Revocation): RemovalLimits => ({
  signal,
  deadline: performance.now() + REMOVAL_MS,
  onProgress: alive,
});
