import { z } from "zod";

/** An allocation is open until its status is `ended`, and a node has at most one open allocation (architecture 14.1). */
export const ALLOCATION_STATUSES = ["granting", "active", "failed", "ending", "ended"] as const;
export const AllocationStatus = z.enum(ALLOCATION_STATUSES);
export type AllocationStatus = z.output<typeof AllocationStatus>;
