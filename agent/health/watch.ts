import { setTimeout as sleep } from "node:timers/promises";
import type { Inventory } from "../../shared/inventory.ts";
import type { ConditionOf } from "../../shared/readiness.ts";
import { hardwarePrint } from "./hardware-print.ts";
import type { HealthSampler, SamplerParts } from "./sampler.ts";

export interface HealthTimes {
  /** How long after its start the agent makes its first health check, because the drivers of a host that boots are still starting. */
  readonly firstMs: number;
  readonly everyMs: number;
  readonly hardwareEveryMs: number;
}
const TIMES: HealthTimes = { firstMs: 60_000, everyMs: 30_000, hardwareEveryMs: 300_000 };

/** Checks the host's health for as long as the agent runs, and notices when the host's hardware is no longer that of the last inventory. */
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

  /**
   * Takes over what a task has just found out about the host's health. Before the agent's first health check, `adopt` does nothing, because the agent
   * will soon check the host's health itself.
   */
  adopt(seen: HealthSampler): void {
    this.#sampler?.adopt(seen);
  }

  /** Resolves when no health check of the agent uses the GPU driver. */
  async quiet(): Promise<void> {
    await this.#sampler?.quiet();
  }

  /**
   * The agent calls `beforeInventory` just before it reads its inventory, so that every later change of the hardware counts as a change since this
   * inventory.
   */
  async beforeInventory(): Promise<void> {
    this.#print = await hardwarePrint(this.#parts.system);
  }

  /** If the agent could not read a part of the inventory, it sends the inventory again at the next comparison of the hardware. */
  afterInventory({ unread }: Pick<Inventory, "unread">): void {
    if (unread !== undefined) this.#print = "";
  }

  /** The hub gives a node without an inventory no tenant, so the watch lets the agent send one at its next comparison. */
  inventoryFailed(): void {
    this.#print = "";
  }

  /** Calls `hardwareChanged` when the hardware has changed since the last inventory. */
  async run(stop: AbortSignal, hardwareChanged: () => void): Promise<void> {
    const { firstMs, everyMs, hardwareEveryMs } = this.#times;
    const pause = (ms: number): Promise<void> =>
      sleep(ms, undefined, { signal: stop, ref: false }).catch(() => undefined);
    await pause(firstMs);
    if (stop.aborted) return;
    // A starting agent does not load the code of the health checks at once, so that it connects to the hub sooner.
    const { HealthSampler: Sampler } = await import("./sampler.ts");
    this.#sampler = new Sampler(this.#parts);
    let comparedAt = performance.now();
    while (!stop.aborted) {
      await this.#turn(async () => this.#sampler?.turn());
      // The agent does not compare the hardware while a task works, because a task may take GPUs and disks off the bus, and no other program may use
      // them meanwhile.
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
