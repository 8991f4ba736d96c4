import { afterEach, describe, expect, it } from "vitest";
import { gpuScrub } from "../../shared/tasks/gpu-scrub.ts";
import type { TaskInput } from "../../shared/tasks/index.ts";
import { NvidiaHost, type NvidiaHostOptions, PCI } from "../../test/fakes/gpu/nvidia-host.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { scrubGpus } from "./scrub.ts";
import type { ScrubTiming } from "./scrub-timing.ts";

/** Long enough for a loaded machine. Only tests of a tool that hangs use a short time-out. */
const TIMING: ScrubTiming = {
  readMs: 60_000,
  resetMs: 60_000,
  serviceMs: 60_000,
  moduleMs: 60_000,
  graceMs: 100,
  holderMs: 500,
  fabricMs: 500,
  lookEveryMs: 20,
};
const ORDER = {
  vendor: "nvidia",
  expected_gpus: 2,
  rungs: ["reset", "reload"],
  kill_holders: true,
  plan: false,
} as const;

let host: NvidiaHost;
afterEach(() => host.remove());

const scrub = async (options: {
  host?: NvidiaHostOptions;
  order?: Partial<TaskInput<"node.gpu_scrub">>;
  timing?: Partial<ScrubTiming>;
}) => {
  const order = gpuScrub.input.parse({ ...ORDER, ...options.order });
  const run = { taskId: newTaskId(), signal: new AbortController().signal, progress: () => undefined };
  const reply = await scrubGpus(host.system, order, run, { ...TIMING, ...options.timing });
  if (!reply.ok) return { error: reply.error, message: reply.message, steps: [], needs: null };
  const { steps, needs } = gpuScrub.result.parse(reply.result);
  return { error: null, message: "", steps, needs };
};
type Scrubbed = Awaited<ReturnType<typeof scrub>>;
const outcomes = ({ steps }: Scrubbed): string[] =>
  steps.map(({ step, target, outcome }) => `${step} ${target} ${outcome}`);
const messageOf = ({ steps }: Scrubbed, step: string, target = "host"): string =>
  steps.find((one) => one.step === step && one.target === target)?.message ?? "no such step";

const CLEAN = [
  "gpu_switches host ok",
  "gpu_services_stop host ok",
  "gpu_holders host ok",
  `gpu_reset ${PCI(0)} ok`,
  `gpu_reset ${PCI(1)} ok`,
  "gpu_services_start host ok",
  `gpu_verify ${PCI(0)} ok`,
  `gpu_verify ${PCI(1)} ok`,
];

describe("a cleaning of NVIDIA GPUs", () => {
  it("stops, resets, and gives everything back in the reverse order", async () => {
    host = new NvidiaHost({ services: ["nvidia-persistenced", "nvidia-dcgm", "kubelet"], persistence: true });
    host.gpu(0, { used: "70000 MiB", recovery: "Reset", persistence: "Enabled" });
    const done = await scrub({});
    expect(outcomes(done)).toEqual(CLEAN);
    expect(done.needs).toBe("none");
    expect(host.actions()).toEqual([
      "stop kubelet.service",
      "stop nvidia-dcgm.service",
      "stop nvidia-persistenced.service",
      "rmmod nvidia_drm",
      "rmmod nvidia_modeset",
      "modprobe nvidia_modeset",
      "modprobe nvidia_drm",
      "start nvidia-persistenced.service",
      "start nvidia-dcgm.service",
      "start kubelet.service",
    ]);
    expect(host.has("var/lib/muster/agent/gpu-scrub.json")).toBe(false);
  });

  it("names the processes that hold a GPU, and leaves them alone unless the order allows to end them", async () => {
    host = new NvidiaHost();
    const pid = await host.holder();
    const done = await scrub({ order: { kill_holders: false } });
    expect(messageOf(done, "gpu_holders")).toContain(`holders_remain: sh (pid ${pid}`);
    expect(outcomes(done)).toContain(`gpu_reset ${PCI(0)} skipped`);
    expect(done.needs).toBe("none");
    expect(host.running()).toEqual(["nvidia-persistenced"]);
  });
});
