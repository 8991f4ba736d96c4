import type { GpuReport, GpuState } from "../gpu/gpu-state.ts";
import { DriverWedged, StateUnreadable, ToolMissing } from "../gpu/gpu-tool.ts";
import type { KernelFault } from "../gpu/kernel-faults.ts";
import { type Findings, fault, fine, type Judged, notObserved, unreadable } from "./judged.ts";

/** The report of the vendor's tool about the GPUs, or the error because of which there is no report. */
export type GpuLook = { readonly report: GpuReport } | { readonly error: unknown };

/** The reason of the GPU condition while NVLink still connects the GPUs after a boot and is not yet ready. */
export const FABRIC_STARTING = "FabricStarting";

const NO_GPUS = fine("The PCI bus lists no GPU of NVIDIA or AMD", "NoGpus");
export const NO_PCI_BUS = notObserved("The host shows no PCI bus, so its GPUs cannot be counted.");

function faultsOf({ pci, faults, fabric }: GpuState): string[] {
  const link = fabric === "failed" ? ["NVLink could not connect it"] : [];
  return [...faults, ...link].map((text) => `${pci}: ${text}`);
}

const REASONS = {
  none: "GpuFaulty",
  reset: "GpuNeedsReset",
  reboot: "GpuNeedsReboot",
  power_cycle: "GpuNeedsReboot",
  unknown: "GpuFaulty",
};

/** The reason of the GPU condition names the largest of the actions that the vendor's tool recommends for the faulty GPUs, for example a reset. */
function reasonOf(gpus: readonly GpuState[]): string {
  const recommended = new Set(gpus.map(({ recommends }) => REASONS[recommends]));
  return ["GpuNeedsReboot", "GpuNeedsReset"].find((reason) => recommended.has(reason)) ?? "GpuFaulty";
}

function judgeReport(onBus: readonly string[], gpus: readonly GpuState[]): Findings {
  const lost = onBus.filter((pci) => !gpus.some((one) => one.pci === pci));
  const faulty = gpus.filter((gpu) => faultsOf(gpu).length > 0);
  const starting = gpus.filter(({ fabric }) => fabric === "starting");
  const health = (): Judged => {
    if (faulty.length > 0) return fault(reasonOf(faulty), faulty.flatMap(faultsOf));
    if (starting.length > 0)
      return fault(
        FABRIC_STARTING,
        starting.map(({ pci }) => `${pci}: NVLink is not connected yet`),
      );
    return fine(`The driver recommends nothing for ${gpus.length} GPUs, and they count no uncorrectable error`);
  };
  return {
    "hardware.gpus":
      lost.length > 0
        ? fault("GpuLost", [`The driver shows ${gpus.length} GPUs, and the PCI bus ${onBus.length}`, ...lost])
        : fine(`The PCI bus and the driver show ${onBus.length} GPUs`, "AllShown"),
    "health.gpu": health(),
  };
}

/** Compares the GPUs on the PCI bus with the GPUs that the driver shows, and judges each GPU by what the vendor's tool says about it. */
export function judgeGpus(onBus: readonly string[], look: GpuLook): Findings {
  if (onBus.length === 0) return { "hardware.gpus": NO_GPUS, "health.gpu": NO_GPUS };
  if ("report" in look) return judgeReport(onBus, look.report.gpus);
  const { error } = look;
  const both = (judged: Judged): Findings => ({ "hardware.gpus": judged, "health.gpu": judged });
  if (error instanceof ToolMissing)
    return both(notObserved(`The PCI bus shows ${onBus.length} GPUs. ${error.message}`));
  if (error instanceof DriverWedged) return both(fault("DriverWedged", [error.message]));
  if (error instanceof StateUnreadable) return both(unreadable(error.message));
  throw error;
}

/**
 * NVIDIA's Xids after which the GPU needs a reset or a repair (NVIDIA, Xid catalogue): uncorrectable ECC errors, failed row remapping, NVLink errors, a
 * GPU off the bus, uncontained errors, and firmware that no longer answers.
 */
const BARRING_XIDS: ReadonlySet<number> = new Set([48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 123, 136, 140, 143]);
/** Xids that show wear of the GPU's memory: remapped rows, many corrected errors, and errors that ended only one program. */
const WEAR_XIDS: ReadonlySet<number> = new Set([63, 92, 94]);

const told = ({ pci, xid, text }: KernelFault): string => `${pci ?? "a GPU"}: ${xid === null ? text : `Xid ${xid}`}`;

/** True for a grave fault, after which the GPU needs a reset or a repair. Every GPU fault that AMD's driver logs counts as grave. */
export const isBarring = ({ xid }: KernelFault): boolean => xid === null || BARRING_XIDS.has(xid);

/**
 * Judges the GPU faults in the kernel's log: serious faults that nothing has cleared yet, and signs of wear that are new since the previous check.
 * Xids that are neither grave nor signs of wear are faults of a tenant's programs.
 */
export function judgeKernelFaults(barring: readonly KernelFault[], news: readonly KernelFault[]): Findings {
  const wear = news.filter(({ xid }) => xid !== null && WEAR_XIDS.has(xid));
  return {
    "health.gpu":
      barring.length > 0 ? fault("KernelFault", barring.map(told)) : fine("No GPU fault in the kernel's log"),
    "health.gpu_wear":
      wear.length > 0 ? fault("MemoryRepaired", wear.map(told)) : fine("No repair of GPU memory in the kernel's log"),
  };
}

/** The RAS error counters that the amdgpu driver keeps for one hardware block of one AMD GPU, from the files `ras/*_err_count`. */
export interface RasCount {
  readonly pci: string;
  readonly block: string;
  readonly uncorrected: number;
  readonly corrected: number;
}

/** Reads the output of `grep -Hs "" .../ras/*_err_count`, whose lines are `PATH:ue: 0` and `PATH:ce: 0`. */
export function parseRasCounts(output: string): RasCount[] {
  const found = new Map<string, RasCount>();
  for (const line of output.split("\n")) {
    const [, pci = "", block = "", kind = "", count = ""] =
      /\/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\/ras\/(\w+)_err_count:\s*(ue|ce):\s*(\d+)\s*$/.exec(line) ?? [];
    if (pci === "") continue;
    const key = `${pci} ${block}`;
    const before = found.get(key) ?? { pci, block, uncorrected: 0, corrected: 0 };
    found.set(key, { ...before, [kind === "ue" ? "uncorrected" : "corrected"]: Number(count) });
  }
  return [...found.values()];
}

export function judgeRas(counts: readonly RasCount[]): Findings {
  if (counts.length === 0) return { "health.gpu_wear": notObserved("The amdgpu driver has no RAS counters.") };
  const texts = (of: "uncorrected" | "corrected"): string[] =>
    counts.filter((one) => one[of] > 0).map((one) => `${one.pci}: ${one.block} counts ${one[of]} ${of} errors`);
  const [broken, wear] = [texts("uncorrected"), texts("corrected")];
  return {
    ...(broken.length > 0 ? { "health.gpu": fault("UncorrectedErrors", broken) } : {}),
    "health.gpu_wear": wear.length > 0 ? fault("CorrectedErrors", wear) : fine("RAS counts no errors"),
  };
}
