import { monitorEventLoopDelay } from "node:perf_hooks";
import type { StoreState } from "../secrets/store-watch.ts";
import type { LogRing } from "./log-ring.ts";

export interface Setting {
  readonly name: string;
  /** The setting's value; null if the setting has neither a value nor a default. The display of a secret setting says only that a value is set. */
  readonly value: string | number | null;
  /** False if nobody has set the setting, so that the hub uses the setting's default value. */
  readonly given: boolean;
}

/** The facts that a hub knows without a database query; the hub's `main.ts` collects these facts. */
export interface HubFacts {
  readonly hubId: string;
  readonly version: string;
  readonly agentUrl: string;
  readonly database: "embedded" | "external";
  readonly secrets: "sealed_file" | "vault";
  readonly stateDir: string;
  readonly settings: readonly Setting[];
  readonly secretStore: () => StoreState;
  readonly agents: () => number;
  readonly pool: () => { readonly connections: number; readonly idle: number; readonly waiting: number };
  readonly eventLoop: EventLoopWatch;
  readonly log: LogRing;
}

export interface EventLoopWatch {
  delay(): { readonly median: number; readonly p99: number; readonly longest: number };
  close(): void;
}

const RESOLUTION_MS = 20;

/** Node.js records the time between two of its checks of the event loop, so `watchEventLoop` subtracts the interval of these checks. */
export function watchEventLoop(): EventLoopWatch {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  const late = (nanoseconds: number): number => Math.max(0, Math.round(nanoseconds / 1e6 - RESOLUTION_MS));
  return {
    delay: () =>
      histogram.count === 0
        ? { median: 0, p99: 0, longest: 0 }
        : { median: late(histogram.percentile(50)), p99: late(histogram.percentile(99)), longest: late(histogram.max) },
    close: () => void histogram.disable(),
  };
}
