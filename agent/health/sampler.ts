import type { ConditionOf } from "../../shared/readiness.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import type { Log } from "../log.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";
import { type Damped, damp } from "./damping.ts";
import { type Findings, type HealthType, type Judged, unreadable, worstOf } from "./judged.ts";
import type { Probe } from "./probe.ts";
import { hardwareProbes, healthProbes } from "./probes.ts";

interface Seen {
  readonly atMs: number;
  readonly parts: Readonly<Partial<Record<HealthType, Damped & { readonly at: Date }>>>;
}

/** After so many rhythms without a new look, what a probe saw no longer counts, and its conditions go stale at the hub. */
const MOST_RHYTHMS = 3;
const MOST_MESSAGE = 1000;

export interface SamplerParts {
  readonly system: System;
  readonly log: Log;
  readonly skewMs: () => number;
  /** True while a task works on the host, whose GPUs must then have no other user. */
  readonly isWorking: () => boolean;
}

/**
 * Looks at the host's health, one probe after another and each in its own rhythm, and keeps what the agent reports about it. A probe that has not
 * ended delays the others, and is never started a second time meanwhile.
 */
export class HealthSampler {
  readonly #parts: SamplerParts;
  readonly #probes: readonly Probe[];
  readonly #seen = new Map<string, Seen>();
  #turn: Promise<void> | null = null;
  #gpuLook: Promise<void> = Promise.resolve();

  constructor(parts: SamplerParts, probes: readonly Probe[] = healthProbes()) {
    this.#parts = parts;
    this.#probes = probes;
  }

  /** Runs the probes that are due. A call during a turn waits for the end of the turn. */
  turn(nowMs = performance.now()): Promise<void> {
    this.#turn ??= this.#run(nowMs).finally(() => {
      this.#turn = null;
    });
    return this.#turn;
  }

  /** Resolves when no probe uses the GPU driver. A task waits for this moment before the task works on the host. */
  quiet(): Promise<void> {
    return this.#gpuLook;
  }

  async #run(nowMs: number): Promise<void> {
    for (const probe of this.#probes) {
      const due = (this.#seen.get(probe.name)?.atMs ?? Number.NEGATIVE_INFINITY) + probe.everyMs;
      if (due > nowMs || (probe.callsGpuDriver && this.#parts.isWorking())) continue;
      const look = this.#look(probe, nowMs);
      if (probe.callsGpuDriver) this.#gpuLook = look;
      await look;
    }
  }

  async #look(probe: Probe, nowMs: number): Promise<void> {
    const before = this.#seen.get(probe.name)?.parts ?? {};
    const { system, skewMs, log } = this.#parts;
    const wasBad = (type: HealthType): boolean => before[type]?.shown.status === "False";
    let findings: Findings;
    try {
      findings = await probe.look({ system, skewMs: skewMs(), wasBad });
    } catch (error) {
      log.warn("a look at the host's health failed", { what: probe.name, error });
      const failed = unreadable(`The look at the ${probe.name} failed: ${messageOf(error)}`);
      findings = Object.fromEntries(Object.keys(before).map((type) => [type, failed]));
    }
    const parts = (Object.entries(findings) as [HealthType, Judged][]).map(([type, judged]) => {
      const was = before[type];
      const damped = damp(type, was ?? null, judged);
      // A value that the damping holds is as old as the look that saw it, so that it does not replace what a task has seen since.
      const at = was !== undefined && damped.shown === was.shown ? was.at : new Date();
      return [type, { ...damped, at }] as const;
    });
    this.#seen.set(probe.name, { atMs: nowMs, parts: Object.fromEntries(parts) });
  }

  /** Takes over what a task has just seen, without damping, so that an older look does not contradict it. */
  adopt(seen: HealthSampler): void {
    for (const { name } of this.#probes) {
      const newer = seen.#seen.get(name);
      if (newer !== undefined) this.#seen.set(name, newer);
    }
  }

  /** The conditions of the host's health as the agent reports them now. Of several looks at one condition, the worst counts. */
  conditions(nowMs = performance.now()): ConditionOf<"agent">[] {
    const current = this.#probes.flatMap((probe) => {
      const seen = this.#seen.get(probe.name);
      return seen === undefined || nowMs - seen.atMs > MOST_RHYTHMS * probe.everyMs ? [] : [seen];
    });
    const types = [...new Set(current.flatMap(({ parts }) => Object.keys(parts) as HealthType[]))].sort();
    return types.flatMap((type) => {
      const of = current.flatMap(({ parts }) =>
        parts[type] === undefined ? [] : [{ at: parts[type].at, judged: parts[type].shown }],
      );
      const judged = worstOf(of.map((one) => one.judged));
      const at = of.find((one) => one.judged === judged)?.at;
      return judged === null || at === undefined ? [] : [conditionOf(type, judged, at)];
    });
  }
}

const conditionOf = (type: HealthType, { status, reason, message }: Judged, at: Date): ConditionOf<"agent"> => ({
  type,
  status,
  reason,
  message: withoutCredentials(message).slice(0, MOST_MESSAGE),
  observed_at: at.toISOString(),
});

/**
 * Looks at the hardware at once and without damping, for a task that must know its present state. A task that looks again passes the same probes, which do
 * not ask a part of the host again that hangs.
 */
export async function lookNow(system: System, log: Log, probes = hardwareProbes()): Promise<HealthSampler> {
  const sampler = new HealthSampler({ system, log, skewMs: () => 0, isWorking: () => false }, probes);
  await sampler.turn();
  return sampler;
}
