import { afterEach, describe, expect, it } from "vitest";
import { gpuScrub } from "../../shared/tasks/gpu-scrub.ts";
import type { TaskInput } from "../../shared/tasks/index.ts";
import { NvidiaHost, type NvidiaHostOptions, PCI } from "../../test/fakes/gpu/nvidia-host.ts";
import { quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { giveBackAfterBoot } from "./give-back-after-boot.ts";
import { readResets } from "./gpu-resets.ts";
import { scrubGpus } from "./scrub.ts";
import type { ScrubTiming } from "./scrub-timing.ts";

/** The time-outs of these tests suit a loaded computer; only tests of a hanging tool use short time-outs. */
const TIMING: ScrubTiming = {
  readMs: 60_000,
  resetMs: 60_000,
  serviceMs: 60_000,
  moduleMs: 60_000,
  graceMs: 100,
  holderMs: 3_000,
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

/** Some tests need root, because only root may read the memory mappings of a process. */
const isRoot = process.getuid?.() === 0;

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
const stepOf = ({ steps }: Scrubbed, step: string, target = "host") => {
  const found = steps.find((one) => one.step === step && one.target === target);
  if (found === undefined) throw new Error(`There is no step ${step} of ${target}.`);
  return found;
};
const messageOf = (done: Scrubbed, step: string, target = "host"): string => stepOf(done, step, target).message;
const outcomeOf = (done: Scrubbed, pci: string): string => stepOf(done, "gpu_verify", pci).outcome;

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

const VERIFY_EVIDENCE = [
  ...["uuid", "serial", "vbios", "driver", "rung", "memory_total_mib", "memory_used_before_mib"],
  ...["memory_used_idle_mib", "memory_used_after_mib", "faults_before", "faults_after", "fabric", "settings"],
  ...["kernel_faults", "on_bus"],
];

describe("a cleaning of NVIDIA GPUs", () => {
  it("stops, resets, and gives everything back in the reverse order", async () => {
    host = new NvidiaHost({ services: ["nvidia-persistenced", "nvidia-dcgm", "kubelet"], persistence: true });
    host.gpu(0, { used: "70000 MiB", recovery: "Reset", persistence: "Enabled" });
    const done = await scrub({});
    expect(outcomes(done)).toEqual(CLEAN);
    // `gpu_verify` is the GPU step with the most values of evidence. If the evidence of `gpu_verify` had more values than a cleaning step may have,
    // `cleaningStep` would drop the last values.
    expect(Object.keys(stepOf(done, "gpu_verify", PCI(0)).evidence)).toEqual(VERIFY_EVIDENCE);
    expect(stepOf(done, "gpu_services_start").evidence).toMatchObject({ secure_boot: null, lockdown: null });
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
    expect((await readResets(host.system)).map(({ pci }) => pci)).toEqual([PCI(0), PCI(1)]);
  });

  it("resets all GPUs on NVSwitches in one call, while the Fabric Manager runs", async () => {
    host = new NvidiaHost({ nvswitch: true, services: ["nvidia-fabricmanager", "nvidia-persistenced"] });
    const done = await scrub({});
    expect(outcomes(done)).toEqual(CLEAN);
    expect(host.actions().join()).not.toContain("fabricmanager");
    expect(stepOf(done, "gpu_reset", PCI(1)).evidence).toMatchObject({
      group: "nvswitch",
      rung: "reset",
      exit_code: 0,
    });
  });

  it.skipIf(!isRoot)("ends holders if the order allows it, also one that ignores SIGTERM", async () => {
    host = new NvidiaHost();
    await host.holder();
    await host.holder({ deaf: true });
    const done = await scrub({});
    expect(outcomes(done)).toEqual(CLEAN);
    expect(stepOf(done, "gpu_holders").evidence).toMatchObject({ found: 2, remaining: 0 });
  });

  it.skipIf(!isRoot)(
    "names the processes that hold a GPU, and leaves them alone unless the order allows to end them",
    async () => {
      host = new NvidiaHost();
      const pid = await host.holder();
      const done = await scrub({ order: { kill_holders: false } });
      expect(messageOf(done, "gpu_holders")).toContain(`holders_remain: sh (pid ${pid}`);
      expect(outcomes(done)).toContain(`gpu_reset ${PCI(0)} skipped`);
      expect(outcomes(done)).toContain(`gpu_verify ${PCI(0)} failed`);
      expect(done.needs).toBe("none");
      expect(host.running()).toEqual(["nvidia-persistenced"]);
    },
  );

  it("reloads the driver if the reset does not work, and stops the Fabric Manager only for that", async () => {
    host = new NvidiaHost({ nvswitch: true, services: ["nvidia-fabricmanager", "nvidia-persistenced"] });
    host.state("reset-unsupported");
    const done = await scrub({});
    expect(outcomes(done)).toEqual(CLEAN);
    expect(stepOf(done, "gpu_reset", PCI(0)).evidence).toMatchObject({ rung: "reload" });
    expect(messageOf(done, "gpu_reset", PCI(0))).toContain("status 3: Resetting GPU is not supported.");
    const actions = host.actions();
    const from = actions.indexOf("stop nvidia-fabricmanager.service");
    expect(actions.slice(from)).toEqual([
      "stop nvidia-fabricmanager.service",
      "rmmod nvidia_drm",
      "rmmod nvidia_modeset",
      "rmmod nvidia",
      "modprobe nvidia",
      "modprobe nvidia_modeset",
      "modprobe nvidia_drm",
      "start nvidia-fabricmanager.service",
      "start nvidia-persistenced.service",
    ]);
  });

  it("asks for a reboot if the means that the order allows do not work", async () => {
    host = new NvidiaHost();
    host.state("reset-unsupported");
    const done = await scrub({ order: { rungs: ["reset"] } });
    expect(messageOf(done, "gpu_verify", PCI(0))).toContain("reset_failed");
    expect(done.needs).toBe("reboot");
    expect(host.actions()).not.toContain("rmmod nvidia");
  });

  it("says which part of the kernel keeps the GPUs", async () => {
    host = new NvidiaHost();
    host.state("module-stays", "nvidia_drm");
    const done = await scrub({});
    const message = messageOf(done, "gpu_reset", PCI(0));
    expect(message).toContain("nvidia_drm stayed loaded: rmmod: ERROR: Module nvidia_drm is in use");
    expect(message).toContain("In use by another client");
    expect(done.needs).toBe("reboot");
  });

  it("does not call a GPU clean that is as faulty as before", async () => {
    host = new NvidiaHost();
    host.gpu(1, { recovery: "Reset", remapPending: "Yes" });
    host.state("gpus/1/broken");
    const done = await scrub({});
    expect(messageOf(done, "gpu_verify", PCI(1))).toContain("gpu_recovery_action Reset, remapped_row_pending is Yes");
    expect([outcomeOf(done, PCI(0)), outcomeOf(done, PCI(1)), done.needs]).toEqual(["ok", "failed", "reboot"]);
  });

  it.each<[string, Parameters<NvidiaHost["gpu"]>[1], string]>([
    ["memory in use", { used: "300 MiB" }, "300 MiB of memory are in use, where at most 20 MiB are expected"],
    ["a process", { processes: [{ pid: 77, name: "python" }] }, "processes 77 use the GPU"],
    ["another firmware", { vbios: "66.6" }, "vbios was 96.00.74.00.01 and is 66.6"],
    ["another serial number", { serial: "N/A" }, "serial was 1654523003308 and is null"],
    ["an unknown value", { volatileErrors: "ERR!" }, "volatile sram_uncorrectable_secded is ERR!"],
    ["MIG", { mig: "Enabled" }, "the setting mig_current is Enabled, where Disabled is expected"],
    [
      "a compute mode",
      { computeMode: "Prohibited" },
      "the setting compute_mode is Prohibited, where Default is expected",
    ],
  ])("does not call a GPU clean that has %s after the reset", async (_what, differs, reason) => {
    host = new NvidiaHost({ gpus: 1 });
    host.gpu(0, differs, "clean");
    const done = await scrub({ order: { expected_gpus: 1 } });
    expect(messageOf(done, "gpu_verify", PCI(0))).toContain(reason);
    expect(outcomeOf(done, PCI(0))).toBe("failed");
  });

  it("waits for the fabric only until its deadline", async () => {
    host = new NvidiaHost({ nvswitch: true });
    const done = await scrub({ order: { rungs: ["reset"] } });
    expect(messageOf(done, "gpu_verify", PCI(0))).toContain("the fabric is starting");
    expect(done.needs).toBe("reboot");
  });

  it("names a GPU that is lost in the reset, and asks for a power cycle", async () => {
    host = new NvidiaHost();
    host.state("lost-at-reset", "1");
    const done = await scrub({});
    expect(messageOf(done, "gpu_verify", PCI(1))).toContain("the GPU is missing");
    expect([outcomeOf(done, PCI(0)), outcomeOf(done, PCI(1)), done.needs]).toEqual(["ok", "failed", "power_cycle"]);
  });

  it("names a GPU that the order expects and the PCI bus lacks", async () => {
    host = new NvidiaHost();
    const done = await scrub({ order: { expected_gpus: 3 } });
    expect(messageOf(done, "gpu_verify", "gpu 3 of 3")).toBe(
      "gpu_missing: The order expects 3 GPUs, and the PCI bus has 2.",
    );
    expect(done.needs).toBe("power_cycle");
  });

  it("names a GPU that is on the PCI bus and that the driver does not list", async () => {
    host = new NvidiaHost();
    host.write(`sys/bus/pci/devices/${PCI(5)}/vendor`, "0x10de\n");
    host.write(`sys/bus/pci/devices/${PCI(5)}/class`, "0x030200\n");
    const done = await scrub({ order: { expected_gpus: 3 } });
    expect(messageOf(done, "gpu_verify", PCI(5))).toContain("gpu_missing: the driver did not list the GPU");
    expect(done.needs).toBe("none");
  });

  it.each([
    ["79", "power_cycle"],
    ["48", "reboot"],
  ])("takes Xid %s in the kernel's log for a fault", async (xid, needs) => {
    host = new NvidiaHost();
    const text = `NVRM: Xid (PCI:${PCI(1).slice(0, -2)}): ${xid}, pid=1, a fault`;
    host.state("kernel.log", `${JSON.stringify({ MESSAGE: text })}\n`);
    const done = await scrub({});
    expect(messageOf(done, "gpu_verify", PCI(1))).toContain(`the kernel logged: ${text}`);
    expect([outcomeOf(done, PCI(0)), outcomeOf(done, PCI(1)), done.needs]).toEqual(["ok", "failed", needs]);
    expect((await readResets(host.system)).map(({ pci }) => pci)).toEqual([PCI(0)]);
  });

  it("does not take an unreadable kernel log for an empty one", async () => {
    host = new NvidiaHost();
    host.state("journal-fails");
    expect(outcomeOf(await scrub({}), PCI(0))).toBe("failed");
  });

  it("reports a switch that keeps the driver from zeroing memory, and lists the others", async () => {
    host = new NvidiaHost();
    host.write("proc/driver/nvidia/params", 'RegistryDwords: "RmX=1"\nRegistryDwordsPerDevice: ""\n');
    expect(stepOf(await scrub({}), "gpu_switches")).toMatchObject({ outcome: "ok", evidence: { switches: "RmX=1" } });
    host.write(`proc/driver/nvidia/gpus/${PCI(0)}/registry`, "RMDisableScrubOnFree: 1\n");
    expect(stepOf(await scrub({}), "gpu_switches").outcome).toBe("failed");
    host.write("proc/driver/nvidia/params", "RmX: 1\n");
    expect(stepOf(await scrub({}), "gpu_switches").message).toContain("state_unreadable");
  });

  it.skipIf(!isRoot)("changes nothing for a plan", async () => {
    host = new NvidiaHost();
    await host.holder();
    const done = await scrub({ order: { plan: true } });
    expect(new Set(done.steps.map(({ outcome }) => outcome))).toEqual(new Set(["planned"]));
    expect(messageOf(done, "gpu_holders")).toContain("Hold a GPU: sh (pid");
    expect([host.actions(), host.has("var/lib/muster/agent/gpu-scrub.json")]).toEqual([[], false]);
  });

  it("fails before any change if a tool is missing or does not tell the state", async () => {
    host = new NvidiaHost();
    host.state("tail", "");
    expect((await scrub({})).error).toBe("state_unreadable");
    host.remove();
    host = new NvidiaHost({ modules: "" });
    expect((await scrub({})).error).toBe("state_unreadable");
    await host.system.remove("/usr/bin/nvidia-smi");
    expect((await scrub({})).error).toBe("tool_missing");
    expect(host.actions()).toEqual([]);
  });

  it("reports a service that does not stop or start, and tries to start it again at the next cleaning", async () => {
    host = new NvidiaHost({ services: ["nvidia-persistenced", "nvidia-dcgm"] });
    host.state("start-fails", "nvidia-dcgm.service");
    host.state("stop-fails", "nvidia-persistenced.service");
    const done = await scrub({});
    expect(messageOf(done, "gpu_services_stop")).toContain("Job for nvidia-persistenced.service failed.");
    expect(messageOf(done, "gpu_services_start")).toContain(
      "services_not_restored: systemctl start nvidia-dcgm.service",
    );
    expect(await scrub({})).toMatchObject({ error: "services_not_restored" });
    await host.system.remove("/state/start-fails");
    await host.system.remove("/state/stop-fails");
    expect(outcomes(await scrub({}))).toEqual(CLEAN);
    expect(host.running()).toEqual(["nvidia-persistenced", "nvidia-dcgm"]);
  });

  it("gives everything back when it is cancelled", async () => {
    host = new NvidiaHost({ services: ["nvidia-persistenced", "nvidia-dcgm"] });
    const abort = new AbortController();
    const cancel = ({ step }: { step: string }): void => {
      if (step === "gpu_holders") abort.abort(new Error("cancelled"));
    };
    const run = { taskId: newTaskId(), signal: abort.signal, progress: cancel };
    await expect(scrubGpus(host.system, gpuScrub.input.parse(ORDER), run, TIMING)).rejects.toThrow("cancelled");
    expect(host.running()).toEqual(["nvidia-persistenced", "nvidia-dcgm"]);
    expect(host.actions()).toContain("stop nvidia-dcgm.service");
    expect(host.has("var/lib/muster/agent/gpu-scrub.json")).toBe(false);
  });
});

describe("a driver that hangs", () => {
  const nextBoot = (): void => host.write("proc/sys/kernel/random/boot_id", "5f0c1a52-0000-4000-8000-000000000002\n");

  it("at the first look ends the task before any change, and bars the GPUs until a reboot", async () => {
    host = new NvidiaHost();
    host.state("hang/query");
    const done = await scrub({ timing: { readMs: 300 } });
    expect(done.error).toBe("driver_wedged");
    expect(done.message).toMatch(/nvidia-smi did not answer in time: process \d+, state \w, waiting in \w+/);
    await host.system.remove("/state/hang/query");
    const ticks = host.ticks();
    expect((await scrub({})).error).toBe("driver_wedged");
    expect(host.ticks()).toBe(ticks);
    nextBoot();
    expect(outcomes(await scrub({}))).toEqual(CLEAN);
  });

  it("in the reset keeps the evidence, starts nothing more, and the next boot starts the services", async () => {
    host = new NvidiaHost({ services: ["nvidia-persistenced", "nvidia-dcgm"] });
    host.state("hang/reset");
    const done = await scrub({ timing: { resetMs: 300 } });
    expect(messageOf(done, "gpu_reset", PCI(0))).toContain("did not answer in time");
    expect(messageOf(done, "gpu_verify", PCI(0))).toContain("driver_wedged");
    expect(messageOf(done, "gpu_services_start")).toContain("start at the next boot");
    expect([done.needs, host.running()]).toEqual(["reboot", []]);
    await host.system.remove("/state/hang/reset");
    await giveBackAfterBoot(host.system, quietAgentLog);
    expect(host.running()).toEqual([]);
    nextBoot();
    await giveBackAfterBoot(host.system, quietAgentLog);
    expect(host.running()).toEqual(["nvidia-persistenced", "nvidia-dcgm"]);
    expect(host.modules()).toEqual(["nvidia", "nvidia_drm", "nvidia_modeset"]);
    expect(outcomes(await scrub({}))).toEqual(CLEAN);
  });

  it("is not blamed for a service that does not stop in time", async () => {
    host = new NvidiaHost({ services: ["kubelet"] });
    host.state("hang/stop-kubelet.service");
    const done = await scrub({ timing: { serviceMs: 5_000 } });
    expect(messageOf(done, "gpu_services_stop")).toContain("systemctl stop kubelet.service did not end");
    expect(outcomeOf(done, PCI(0))).toBe("ok");
  });
});
