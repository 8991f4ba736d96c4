import { afterEach, describe, expect, it } from "vitest";
import { gpuScrub } from "../../shared/tasks/gpu-scrub.ts";
import { AMD_PCI, type AmdGpu, AmdHost } from "../../test/fakes/gpu/amd-host.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { scrubGpus } from "./scrub.ts";
import { SCRUB_TIMING } from "./scrub-timing.ts";

const GPUS: readonly AmdGpu[] = [
  { pci: AMD_PCI(0), hive: "77", vramUsed: 50_000_000_000 },
  { pci: AMD_PCI(1), hive: "77", shader: false },
  { pci: AMD_PCI(2) },
];

let host: AmdHost;
afterEach(() => host.remove());

async function scrub(rungs: readonly string[] = ["reset", "reload"]) {
  const order = { vendor: "amd", expected_gpus: 3, rungs, kill_holders: true, plan: false };
  const run = { taskId: newTaskId(), signal: new AbortController().signal, progress: () => undefined };
  const reply = await scrubGpus(host.system, gpuScrub.input.parse(order), run, SCRUB_TIMING);
  if (!reply.ok) throw new Error(`${reply.error}: ${reply.message}`);
  const { steps, needs } = gpuScrub.result.parse(reply.result);
  const outcome = (step: string, n: number) => steps.find((one) => one.step === step && one.target === AMD_PCI(n));
  return { steps, needs, outcome };
}

describe("a cleaning of AMD GPUs", () => {
  it("resets each hive once, and runs the cleaner shader where the driver has it", async () => {
    host = new AmdHost(GPUS);
    host.outputs("clean", GPUS);
    const { steps, needs, outcome } = await scrub();
    expect(host.actions()).toEqual([`reset ${AMD_PCI(0)}`, `reset ${AMD_PCI(2)}`]);
    expect([0, 1, 2].map((n) => outcome("gpu_verify", n)?.outcome)).toEqual(["ok", "ok", "ok"]);
    expect([0, 1, 2].map((n) => outcome("gpu_cleaner_shader", n)?.outcome)).toEqual(["ok", "unsupported", "ok"]);
    expect(host.read(`sys/bus/pci/devices/${AMD_PCI(0)}/run_cleaner_shader`)).toBe("0\n");
    expect(outcome("gpu_reset", 1)?.evidence).toMatchObject({ group: "hive 77", rung: "reset" });
    expect(outcome("gpu_verify", 0)?.evidence).toMatchObject({
      uuid: "GPU-a1b2c3d4e5f605ff",
      memory_used_before_mib: 47_684,
      memory_used_after_mib: 286,
    });
    expect([steps.some(({ step }) => step === "gpu_switches"), needs]).toEqual([false, "none"]);
  });

  it("reloads the driver if the reset fails, and reports the reset's own words", async () => {
    host = new AmdHost(GPUS);
    host.outputs("clean", GPUS);
    host.write("state/reset-fails", "");
    const { outcome } = await scrub();
    expect(host.actions()).toEqual(["rmmod amdgpu", "modprobe amdgpu"]);
    expect(outcome("gpu_reset", 0)?.message).toContain("Unable to reset");
    expect(outcome("gpu_verify", 0)?.outcome).toBe("ok");
    const alone = await scrub(["reset"]);
    expect([alone.outcome("gpu_verify", 0)?.outcome, alone.needs]).toEqual(["failed", "reboot"]);
  });

  it("ends partitions", async () => {
    const divided = GPUS.map((gpu) => ({ ...gpu, computePartition: "CPX" }));
    host = new AmdHost(divided);
    host.outputs("clean", divided);
    const { outcome } = await scrub();
    expect(host.read(`sys/bus/pci/devices/${AMD_PCI(2)}/current_compute_partition`)).toBe("SPX\n");
    expect(outcome("gpu_verify", 2)?.outcome).toBe("ok");
  });

  it("does not call a GPU clean whose errors stay", async () => {
    const faulty = GPUS.map((gpu, n) => (n === 2 ? { ...gpu, uncorrectable: 4 } : gpu));
    host = new AmdHost(faulty);
    host.outputs("clean", faulty);
    const { outcome, needs } = await scrub();
    expect(outcome("gpu_verify", 2)?.message).toContain("total_uncorrectable_count is 4");
    expect(needs).toBe("reboot");
  });
});
