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

/** After `MOST_RHYTHMS` of its intervals without a new check, a probe's last findings no longer count, and the hub marks their conditions as stale. */
const MOST_RHYTHMS = 3;
const MOST_MESSAGE = 1000;

export interface SamplerParts {
  readonly system: System;
  readonly log: Log;
  readonly skewMs: () => number;
  /** True while a task works on the host; no probe may then call the GPU driver. */
  readonly isWorking: () => boolean;
}

/**
 * Checks the host's health by one probe after another, each at its own interval, and keeps the results that the agent reports. A probe that has not
 * ended delays the other probes, and is not started a second time meanwhile.
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

  /** Runs the health probes that are due. If the probes already run, a call of `turn` waits for their end and does not start them a second time. */
  turn(nowMs = performance.now()): Promise<void> {
    this.#turn ??= this.#run(nowMs).finally(() => {
      this.#turn = null;
    });
    return this.#turn;
  }

  /** Resolves when no probe uses the GPU driver. Before a task works on the host, it waits until no probe uses the GPU driver. */
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
      // If one deviating check does not yet replace a finding (damping), the finding keeps the time of the check that made it, so that it does not
      // replace what a task has observed since.
      const at = was !== undefined && damped.shown === was.shown ? was.at : new Date();
      return [type, { ...damped, at }] as const;
    });
    this.#seen.set(probe.name, { atMs: nowMs, parts: Object.fromEntries(parts) });
  }

  /** Replaces older health findings at once by those of a task that has just checked the host, so that the older findings do not contradict them. */
  adopt(seen: HealthSampler): void {
    for (const { name } of this.#probes) {
      const newer = seen.#seen.get(name);
      if (newer !== undefined) this.#seen.set(name, newer);
    }
  }

  /** The conditions of the host's health as the agent reports them now. If several probes report the same condition, the worst result counts. */
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
 * Checks the hardware at once and takes each result as it is, without waiting for a second check, for a task that must know the hardware's present
 * state. A task that checks the host again passes the probes of its first check to `lookNow`, because these probes skip a part of the host on which a
 * tool has recently hung.
 */
export async function lookNow(system: System, log: Log, probes = hardwareProbes()): Promise<HealthSampler> {
  const sampler = new HealthSampler({ system, log, skewMs: () => 0, isWorking: () => false }, probes);
  await sampler.turn();
  return sampler;
}
