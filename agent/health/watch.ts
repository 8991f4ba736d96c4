import { setTimeout as sleep } from "node:timers/promises";
import type { Inventory } from "../../shared/inventory.ts";
import type { ConditionOf } from "../../shared/readiness.ts";
import { hardwarePrint } from "./hardware-print.ts";
import type { HealthSampler, SamplerParts } from "./sampler.ts";

export interface HealthTimes {
  /** How long after its start the agent first looks, because the drivers of a host that boots are still starting. */
  readonly firstMs: number;
  readonly everyMs: number;
  readonly hardwareEveryMs: number;
}
const TIMES: HealthTimes = { firstMs: 60_000, everyMs: 30_000, hardwareEveryMs: 300_000 };

/** Looks at the host's health for as long as the agent runs, and notices when the host's hardware is no longer that of the last inventory. */
export class HealthWatch {
  readonly #parts: SamplerParts;
  readonly #times: HealthTimes;
  #sampler: HealthSampler | null = null;
  #print: string | null = null;

  constructor(parts: SamplerParts, times: HealthTimes = TIMES) {
    this.#parts = parts;
    this.#times = times;
  }

  conditions(): ConditionOf<"agent">[] {
    return this.#sampler?.conditions() ?? [];
  }

  /** Takes over what a task has just seen. A watch that has not begun to look will look for itself. */
  adopt(seen: HealthSampler): void {
    this.#sampler?.adopt(seen);
  }

  /** Resolves when no health check of the agent uses the GPU driver. */
  async quiet(): Promise<void> {
    await this.#sampler?.quiet();
  }

  /** The agent calls `beforeInventory` just before it reads its inventory, so that a later change of the hardware is a change since then. */
  async beforeInventory(): Promise<void> {
    this.#print = await hardwarePrint(this.#parts.system);
  }

  /** An inventory with an unread part is sent again at the next comparison. */
  afterInventory({ unread }: Pick<Inventory, "unread">): void {
    if (unread !== undefined) this.#print = "";
  }

  /** Calls `hardwareChanged` when the hardware has changed since the last inventory. */
  async run(stop: AbortSignal, hardwareChanged: () => void): Promise<void> {
    const { firstMs, everyMs, hardwareEveryMs } = this.#times;
    const pause = (ms: number): Promise<void> =>
      sleep(ms, undefined, { signal: stop, ref: false }).catch(() => undefined);
    await pause(firstMs);
    if (stop.aborted) return;
    // An agent that starts does not load the code of the looks, to be connected soon.
    const { HealthSampler: Sampler } = await import("./sampler.ts");
    this.#sampler = new Sampler(this.#parts);
    let comparedAt = performance.now();
    while (!stop.aborted) {
      await this.#turn(async () => this.#sampler?.turn());
      // A task may take GPUs and disks off the bus for a moment, and no other program may use them meanwhile.
      if (performance.now() - comparedAt >= hardwareEveryMs && !this.#parts.isWorking()) {
        comparedAt = performance.now();
        await this.#turn(async () => {
          if (this.#print !== null && (await hardwarePrint(this.#parts.system)) !== this.#print) hardwareChanged();
        });
      }
      await pause(everyMs);
    }
  }

  async #turn(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#parts.log.warn("a look at the host failed", { error });
    }
  }
}
