import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { giveBackLeftovers } from "../../agent/gpu/gpu-give-back.ts";
import { NvidiaHost } from "../fakes/gpu/nvidia-host.ts";
import { newTaskId } from "../fakes/hub/orders.ts";

const PROGRAM = join(import.meta.dirname, "../support/gpu-scrub-process.ts");
const SERVICES = ["nvidia-persistenced", "nvidia-fabricmanager"];
const MODULES = ["nvidia", "nvidia_modeset"];
const LOADED = `nvidia_modeset 1814528 0 - Live 0x0 (OE)\nnvidia 56717312 1 nvidia_modeset, Live 0x0 (OE)\n`;

let host: NvidiaHost;
afterEach(() => host.remove());

const freshHost = (): NvidiaHost => {
  const made = new NvidiaHost({ gpus: 1, nvswitch: true, persistence: true, services: SERVICES, modules: LOADED });
  made.state("reset-unsupported");
  return made;
};

/** Cleans the GPUs in a separate process, and returns true if a simulated tool killed that process. */
function clean(killAt: string): boolean {
  host.state("kill-at", killAt);
  const { signal, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, host.root, newTaskId()], {
    encoding: "utf8",
  });
  if (signal === null) expect(JSON.parse(stdout), stderr).toMatchObject({ ok: true, result: { needs: "none" } });
  return signal === "SIGKILL";
}

const count = (action: string): number => host.actions().filter((one) => one === action).length;

/** Expects that all services and kernel modules are as before the GPU cleaning, and that the agent undid each stop or unload exactly once. */
function expectAllBack(at: string): void {
  expect(host.running(), at).toEqual(SERVICES);
  expect(host.modules(), at).toEqual(MODULES);
  expect(host.read("state/gpus/0/now"), at).toContain("<persistence_mode>Enabled</persistence_mode>");
  expect(host.has("var/lib/muster/agent/gpu-scrub.json"), at).toBe(false);
  for (const name of SERVICES) expect(count(`start ${name}.service`), at).toBe(count(`stop ${name}.service`));
  for (const name of MODULES) expect(count(`modprobe ${name}`), at).toBe(count(`rmmod ${name}`));
}

describe("a cleaning whose process is killed", () => {
  it.each(["before", "after"])(
    "%s any call of a tool gives everything back, each thing once",
    async (when) => {
      let kills = 0;
      for (let call = 1; ; call += 1) {
        host = freshHost();
        const killed = clean(`${when} ${call}`);
        if (killed) {
          kills += 1;
          host.state("kill-at");
          const given = await giveBackLeftovers(host.system);
          expect(given?.failures ?? [], `${when} ${call}`).toEqual([]);
        }
        expectAllBack(`${when} ${call}`);
        if (!killed) break;
        host.remove();
      }
      expect(kills).toBeGreaterThan(15);
      clean("");
      expectAllBack("the next cleaning");
    },
    600_000,
  );
});
