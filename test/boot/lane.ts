import type { Region } from "../fakes/maas/engine/region.ts";

/** What the region's machines boot as, and how they and this machine reach each other. */
export interface Lane {
  /** Address that hub and region listen on. */
  readonly listen: string;
  /** The same as hosts name it. */
  readonly reach: string;
  /** Takes over the machines' power. */
  attach(region: Region, maasUrl: string): void;
  /** Aborted, with what went wrong, when a machine could not be switched on or off. */
  readonly failed: AbortSignal;
  stop(): Promise<void>;
}
