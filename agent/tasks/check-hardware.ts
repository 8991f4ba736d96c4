import { setTimeout as sleep } from "node:timers/promises";
import type { TaskHandlers } from "../../shared/tasks/index.ts";
import { FABRIC_STARTING } from "../health/gpus.ts";
import { hardwareProbes } from "../health/probes.ts";
import { lookNow } from "../health/sampler.ts";
import type { HealthWatch } from "../health/watch.ts";
import { createLog } from "../log.ts";
import type { System } from "../system/system.ts";

/** NVLink connects the GPUs within minutes after a boot or a reset. */
const FABRIC_WITHIN_MS = 300_000;
const LOOK_AGAIN_MS = 10_000;

/**
 * Looks at the host's hardware, and waits while NVLink is still connecting the GPUs. After the hardware check, the agent's regular health checks
 * continue from the conditions that the hardware check has found.
 */
export const checkHardware =
  (
    system: System,
    health: Pick<HealthWatch, "adopt" | "beforeInventory">,
    log = createLog(),
  ): TaskHandlers["node.check_hardware"] =>
  async (_input, { signal }) => {
    const until = performance.now() + FABRIC_WITHIN_MS;
    const probes = hardwareProbes();
    let seen = await lookNow(system, log, probes);
    while (seen.conditions().some(({ reason }) => reason === FABRIC_STARTING) && performance.now() < until) {
      await sleep(LOOK_AGAIN_MS, undefined, { signal });
      seen = await lookNow(system, log, probes);
    }
    health.adopt(seen);
    await health.beforeInventory();
    return {
      ok: true,
      result: {
        boot_id: await system.bootId(),
        inventory: await system.inventory(),
        gpus_counted: (await system.pciGpus()) !== null,
        conditions: seen.conditions(),
      },
    };
  };
