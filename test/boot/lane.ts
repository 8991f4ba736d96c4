import type { Region } from "../fakes/maas/engine/region.ts";

/** How the region's machines boot, and how they and the computer that runs the tests reach each other. */
export interface Lane {
  /** The address on which hub and region listen. */
  readonly listen: string;
  /** The address by which hosts reach the address `listen`. */
  readonly reach: string;
  /** Connects the region with the hosts: after `attach`, the power calls of the region switch the real hosts on and off. */
  attach(region: Region, maasUrl: string): void;
  /** The signal `failed` is aborted, with the reason, when a machine could not be switched on or off. */
  readonly failed: AbortSignal;
  stop(): Promise<void>;
}
