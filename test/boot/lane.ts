import type { Region } from "../fakes/maas/engine/region.ts";

/** A `Lane` boots the simulated region's machines as containers or virtual machines, and connects these hosts with this computer. */
export interface Lane {
  /** The address on which the hub and the simulated region listen. */
  readonly listen: string;
  /** The address by which hosts reach the address `listen`. */
  readonly reach: string;
  /** Connects the simulated region with real hosts, which the region's power calls then switch on and off. */
  attach(region: Region, maasUrl: string): void;
  /** The signal is aborted, with the reason, when a host could not be switched on or off. */
  readonly failed: AbortSignal;
  stop(): Promise<void>;
}
