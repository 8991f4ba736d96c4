import { monitorEventLoopDelay } from "node:perf_hooks";
import type { StoreState } from "../secrets/store-watch.ts";
import type { LogRing } from "./log-ring.ts";

/** A setting in force, under the name by which an operator sets it. */
export interface Setting {
  readonly name: string;
  /** Of a secret whether it is set, and nothing else; null for what has neither a value nor a default. */
  readonly value: string | number | null;
  /** False: nobody set it, and this is its default. */
  readonly given: boolean;
}

/** What a hub knows of itself without asking anybody; composed in the hub's main. */
export interface HubFacts {
  readonly hubId: string;
  readonly version: string;
  readonly agentUrl: string;
  readonly database: "embedded" | "external";
  readonly secrets: "sealed_file" | "vault";
  readonly stateDir: string;
  readonly settings: readonly Setting[];
  readonly secretStore: () => StoreState;
  /** Agents that hold a session with this hub. */
  readonly agents: () => number;
  readonly pool: () => { readonly connections: number; readonly idle: number; readonly waiting: number };
  readonly eventLoop: EventLoopWatch;
  readonly log: LogRing;
}

export interface EventLoopWatch {
  /** Since the watch began, in milliseconds. */
  delay(): { readonly median: number; readonly p99: number; readonly longest: number };
  close(): void;
}

const RESOLUTION_MS = 20;

/** How late the event loop comes to what is due. What Node records is the time between two looks, of which the resolution is no delay. */
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
