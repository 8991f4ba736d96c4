import type { Region } from "../fakes/maas/engine/region.ts";

/**
 * A `Lane` boots the simulated region's machines as containers or as virtual machines, and connects these hosts with the computer that runs the
 * tests.
 */
export interface Lane {
  /** The address on which the hub and the simulated region listen. */
  readonly listen: string;
  /** The address by which hosts reach the address `listen`. */
  readonly reach: string;
  /** Connects the simulated region with the real hosts: after `attach`, the power calls of the region switch the hosts on and off. */
  attach(region: Region, maasUrl: string): void;
  /** The signal `failed` is aborted, with the reason, when a host could not be switched on or off. */
  readonly failed: AbortSignal;
  stop(): Promise<void>;
}
