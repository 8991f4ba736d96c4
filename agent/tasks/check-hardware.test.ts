import { rmSync } from "node:fs";
import { afterEach, expect, it } from "vitest";
import { TASKS } from "../../shared/tasks/index.ts";
import { AMD_PCI, AmdHost } from "../../test/fakes/gpu/amd-host.ts";
import { HostFolder, quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import type { HealthSampler } from "../health/sampler.ts";
import { checkHardware } from "./check-hardware.ts";

let host: HostFolder;
let adopted: HealthSampler | null = null;
afterEach(() => host.remove());

/** The number of times that the agent's watch took the present hardware as the one that the hub knows. */
let compared = 0;

async function check() {
  const before = compared;
  const watch = {
    beforeInventory: async () => {
      compared += 1;
    },
    adopt: (seen: HealthSampler) => {
      adopted = seen;
    },
  };
  const run = { taskId: newTaskId(), signal: new AbortController().signal, progress: () => undefined };
  const reply = await checkHardware(host.system, watch, quietAgentLog)({}, run);
  if (!reply.ok) throw new Error(reply.message);
  const { inventory, gpus_counted, conditions } = TASKS["node.check_hardware"].result.parse(reply.result);
  expect(adopted?.conditions(), "the agent's watch takes over what the task has seen").toEqual(conditions);
  expect(compared, "a later change of the hardware is a change since the task").toBe(before + 1);
  const gpus = inventory.gpus.filter(({ vendor }) => vendor.startsWith("Advanced Micro Devices"));
  return { gpus: gpus.length, gpus_counted, conditions: conditions.map(({ type, status }) => `${type} ${status}`) };
}

it("counts the GPUs on the bus, and looks at their state", async () => {
  const gpus = Array.from({ length: 3 }, (_, number) => ({ pci: AMD_PCI(number) }));
  const amd = new AmdHost(gpus);
  host = amd;
  const whole = await check();
  expect(whole).toMatchObject({ gpus: 3, gpus_counted: true });
  expect(whole.conditions).toEqual(expect.arrayContaining(["hardware.gpus True", "health.gpu True"]));
  // The driver no longer answers for a GPU that has left the bus.
  rmSync(host.path(`sys/bus/pci/devices/${AMD_PCI(2)}`), { recursive: true });
  amd.outputs("now", gpus.slice(0, 2));
  expect(await check()).toMatchObject({ gpus: 2, gpus_counted: true });
});

it("says so if the host shows no PCI bus", async () => {
  host = new HostFolder();
  const { gpus_counted, conditions } = await check();
  expect(gpus_counted).toBe(false);
  expect(conditions).toEqual(expect.arrayContaining(["hardware.gpus Unknown", "health.gpu Unknown"]));
});
