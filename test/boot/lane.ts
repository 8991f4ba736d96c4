import type { Region } from "../fakes/maas/engine/region.ts";

/** Boots the simulated region's machines as containers or virtual machines, and connects these hosts with this computer. */
export interface Lane {
  /** The address of this computer at which the hub and the simulated region listen. */
  readonly listen: string;
  /** The address by which hosts reach the hub and the simulated region. */
  readonly reach: string;
  /** Connects the simulated region with real hosts, so that the region's power calls switch the hosts on and off. */
  attach(region: Region, maasUrl: string): void;
  /** Is aborted, with the reason, when a host of the simulated region could not be switched on or off. */
  readonly failed: AbortSignal;
  stop(): Promise<void>;
}
