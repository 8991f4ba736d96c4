import { callDriver, DriverWedged, StateUnreadable } from "../gpu/gpu-tool.ts";
import { gpuTools } from "../gpu/gpu-tools.ts";
import { parseNvidiaReport } from "../gpu/nvidia-report.ts";
import { SCRUB_TIMING } from "../gpu/scrub-timing.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";
import { type GpuLook, judgeGpus, judgeRas, NO_PCI_BUS, parseRasCounts } from "./gpus.ts";
import { type Findings, notObserved, unreadable } from "./judged.ts";
import { judgeNvidiaWear, parseNvidiaWear } from "./nvidia-wear.ts";
import { AFTER_HANG_MS, PatientTools } from "./patience.ts";
import { type Probe, type ProbeContext, RHYTHM, TOOL_TIME, type ToolTime } from "./probe.ts";

const TIMES = { timeoutMs: SCRUB_TIMING.readMs, graceMs: SCRUB_TIMING.graceMs };

/** After the GPU driver has hung, keeps each check from starting one more program that calls the driver. */
class Patience {
  #wedge: { readonly error: DriverWedged; readonly at: number } | null = null;

  async read(look: () => Promise<GpuLook>): Promise<GpuLook> {
    const since = this.#wedge === null ? Number.POSITIVE_INFINITY : performance.now() - this.#wedge.at;
    if (this.#wedge !== null && since < AFTER_HANG_MS) return { error: this.#wedge.error };
    try {
      this.#wedge = null;
      return await look();
    } catch (error) {
      if (error instanceof DriverWedged) this.#wedge = { error, at: performance.now() };
      return { error };
    }
  }
}

const addressesOf = async (system: System, vendor: "nvidia" | "amd"): Promise<readonly string[] | null> =>
  (await system.pciGpus())?.filter((gpu) => gpu.vendor === vendor).map(({ address }) => address) ?? null;

/** If the host has no GPU at all, only the probe of NVIDIA's GPUs reports the lack of GPUs. */
async function withoutGpus(system: System): Promise<Findings> {
  const gpus = await system.pciGpus();
  if (gpus === null) return { "hardware.gpus": NO_PCI_BUS, "health.gpu": NO_PCI_BUS };
  return gpus.length === 0 ? judgeGpus([], { report: { gpus: [] } }) : {};
}

export function nvidiaProbe(): Probe {
  const patience = new Patience();
  const look = async ({ system, wasBad }: ProbeContext): Promise<Findings> => {
    const onBus = await addressesOf(system, "nvidia");
    if (onBus === null || onBus.length === 0) return withoutGpus(system);
    let wear: Findings = { "health.gpu_wear": notObserved("nvidia-smi says nothing about the GPUs.") };
    const seen = await patience.read(async () => {
      const ran = await callDriver(system, "nvidia-smi", ["-q", "-x"], TIMES);
      if (ran.exitCode !== 0) throw new StateUnreadable(`nvidia-smi ended with status ${ran.exitCode}: ${ran.said}`);
      return readable(() => {
        const report = parseNvidiaReport(ran.stdout);
        wear = judgeNvidiaWear(parseNvidiaWear(ran.stdout), wasBad("health.gpu_wear"));
        return { report };
      });
    });
    return { ...judgeGpus(onBus, seen), ...wear };
  };
  return { name: "nvidia", everyMs: RHYTHM.nvidia, callsGpuDriver: true, look };
}

function readable(parse: () => GpuLook): GpuLook {
  try {
    return parse();
  } catch (error) {
    throw new StateUnreadable(messageOf(error));
  }
}

export function amdProbe(): Probe {
  const patience = new Patience();
  const look = async ({ system }: ProbeContext): Promise<Findings> => {
    const onBus = await addressesOf(system, "amd");
    if (onBus === null || onBus.length === 0) return {};
    return judgeGpus(
      onBus,
      await patience.read(async () => ({ report: await gpuTools("amd", system, SCRUB_TIMING).read() })),
    );
  };
  return { name: "amd", everyMs: RHYTHM.amd, callsGpuDriver: true, look };
}

/**
 * Reads the RAS counters from the amdgpu driver's files, which costs much less than a run of amd-smi. The separate process `grep` reads the files of
 * the RAS counters, because a read may hang in the driver.
 */
export function rasProbe(times: ToolTime = TOOL_TIME): Probe {
  const tools = new PatientTools();
  const look = async ({ system }: ProbeContext): Promise<Findings> => {
    const onBus = await addressesOf(system, "amd");
    if (onBus === null || onBus.length === 0) return {};
    const paths: string[] = [];
    for (const pci of onBus) {
      const folder = `/sys/bus/pci/devices/${pci}/ras`;
      const files = (await system.list(folder)).filter((name) => name.endsWith("_err_count"));
      paths.push(...files.map((name) => `${system.root === "/" ? "" : system.root}${folder}/${name}`));
    }
    if (paths.length === 0) return judgeRas([]);
    const ran = await tools.attempt(system, "ras", ["grep", "-Hs", "", ...paths], times);
    if (ran.kind === "missing") return judgeRas([]);
    const counts = ran.kind === "ended" ? parseRasCounts(ran.stdout) : [];
    if (counts.length > 0) return judgeRas(counts);
    const broken = unreadable(
      ran.kind === "hung" ? "The RAS counters were not read in time." : "The RAS counters have no known form.",
    );
    return { "health.gpu": broken, "health.gpu_wear": broken };
  };
  return { name: "ras", everyMs: RHYTHM.nvidia, callsGpuDriver: true, look };
}
