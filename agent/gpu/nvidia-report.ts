import {
  type FabricState,
  type GpuAction,
  type GpuProcess,
  type GpuReport,
  type GpuState,
  pciAddress,
} from "./gpu-state.ts";
import { childrenNamed, parseDocument, textAt, UnreadableXml, type XmlNode } from "./gpu-xml.ts";

/**
 * Whether a text in nvidia-smi's output means that the GPU lacks the field. A text of nvidia-smi that is neither `N/A` nor a known value counts as an
 * unknown value.
 */
const isAbsent = (text: string | null): boolean => text === null || text === "N/A" || text === "[N/A]";
const known = (text: string | null): string | null => (isAbsent(text) || text === "" ? null : text);

/**
 * The actions that NVIDIA's driver recommends for a GPU, by the text in nvidia-smi's output. NVIDIA's drivers have the field `gpu_recovery_action`
 * since R565, and up to R555 only `gpu_reset_status`. The action that NVIDIA's driver recommends can also be more than a reset of the GPU, for
 * example a reboot of the host.
 */
const ACTIONS: Readonly<Record<string, GpuAction>> = {
  None: "none",
  Reset: "reset",
  "GPU Reset": "reset",
  "Drain P2P": "reset",
  "Drain and Reset": "reset",
  "Bus Reset": "reboot",
  Reboot: "reboot",
  "Node Reboot": "reboot",
  "System Reboot": "reboot",
  "Recover IMEX Domain": "reboot",
};

function recommendation(gpu: XmlNode): { readonly action: GpuAction; readonly said: string } {
  const action = textAt(gpu, "gpu_recovery_action");
  if (action !== null) return { action: ACTIONS[action] ?? "unknown", said: `gpu_recovery_action ${action}` };
  const required = textAt(gpu, "gpu_reset_status/reset_required");
  const drain = textAt(gpu, "gpu_reset_status/drain_and_reset_recommended");
  const said = `reset_required ${required}, drain_and_reset_recommended ${drain}`;
  if (required === "Yes" || drain === "Yes") return { action: "reset", said };
  if (required === "No" && (drain === "No" || isAbsent(drain))) return { action: "none", said };
  return { action: "unknown", said };
}

/** The names of the counters of uncorrectable memory errors since the driver's last load, which differ between GPUs and drivers. */
const VOLATILE = [
  "double_bit/total",
  "sram_uncorrectable",
  "sram_uncorrectable_parity",
  "sram_uncorrectable_secded",
  "dram_uncorrectable",
];
const REPAIRS = ["channel_repair_pending", "tpc_repair_pending"];

/**
 * The faults that the GPU's counters of uncorrectable errors show since the last load of the GPU driver. The GPU's error counters may be missing only
 * if its error correction is off or does not exist.
 */
function eccFaults(gpu: XmlNode): string[] {
  const mode = textAt(gpu, "ecc_mode/current_ecc");
  const counted = VOLATILE.flatMap((name) => {
    const value = textAt(gpu, `ecc_errors/volatile/${name}`);
    return value === null ? [] : [{ name, value }];
  });
  const faults = counted.flatMap(({ name, value }) => {
    if (value === "0" || (isAbsent(value) && mode !== "Enabled")) return [];
    return [`volatile ${name} is ${value}`];
  });
  if (counted.length === 0 && mode === "Enabled") faults.push("the volatile ECC errors are not told");
  for (const name of REPAIRS) {
    const value = textAt(gpu, `ecc_errors/${name}`);
    if (value !== null && value !== "No" && !isAbsent(value)) faults.push(`${name} is ${value}`);
  }
  return faults;
}

/**
 * Returns the faults in nvidia-smi's output about repairs of the GPU's memory that wait for a reset or that failed. NVIDIA GPUs since Ampere remap
 * rows of faulty memory, and older GPUs retire pages.
 */
function memoryFaults(gpu: XmlNode): string[] {
  const pending = textAt(gpu, "remapped_rows/remapped_row_pending");
  const failure = textAt(gpu, "remapped_rows/remapped_row_failure");
  const retirement = textAt(gpu, "retired_pages/pending_retirement") ?? textAt(gpu, "retired_pages/pending_blacklist");
  if (isAbsent(pending) && isAbsent(failure))
    return retirement === "No" ? [] : [`pending repairs of memory are not known (pending_retirement ${retirement})`];
  const faults: string[] = [];
  if (pending !== "No") faults.push(`remapped_row_pending is ${pending}`);
  if (failure !== "No") faults.push(`remapped_row_failure is ${failure}`);
  if (!isAbsent(retirement) && retirement !== "No") faults.push(`pending_retirement is ${retirement}`);
  return faults;
}

function fabricOf(gpu: XmlNode): FabricState {
  const state = textAt(gpu, "fabric/state");
  if (isAbsent(state) || state === "Not Supported") return "absent";
  if (state !== "Completed") return "starting";
  return textAt(gpu, "fabric/status") === "Success" ? "ready" : "failed";
}

function processesOf(gpu: XmlNode): readonly GpuProcess[] | null {
  const list = gpu.children.find((child) => child.name === "processes");
  if (list === undefined || (list.children.length === 0 && !["", "None", "N/A"].includes(list.text))) return null;
  return childrenNamed(list, "process_info").map((one) => ({
    pid: Number(textAt(one, "pid")),
    name: textAt(one, "process_name") ?? "?",
  }));
}

const mib = (text: string | null): number | null => {
  const parts = /^(\d+) MiB$/.exec(text ?? "");
  return parts === null ? null : Number(parts[1]);
};

/**
 * The GPU settings, each with the path of its field in nvidia-smi's output. The agent checks the power limit separately from the other GPU settings,
 * because a power limit of `N/A` counts as the default limit.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  persistence_mode: "persistence_mode",
  mig_current: "mig_mode/current_mig",
  mig_pending: "mig_mode/pending_mig",
  compute_mode: "compute_mode",
  accounting_mode: "accounting_mode",
  ecc_current: "ecc_mode/current_ecc",
  ecc_pending: "ecc_mode/pending_ecc",
};

function gpuOf(gpu: XmlNode, driver: string | null): GpuState {
  const pci = pciAddress(textAt(gpu, "pci/pci_bus_id") ?? gpu.attributes["id"] ?? "");
  if (pci === null) throw new UnreadableXml("A GPU in the output of nvidia-smi has no PCI address.");
  const { action, said } = recommendation(gpu);
  const used = mib(textAt(gpu, "fb_memory_usage/used"));
  const total = mib(textAt(gpu, "fb_memory_usage/total"));
  const uuid = known(textAt(gpu, "uuid"));
  const fabric = fabricOf(gpu);
  const faults = [
    ...(action === "none" ? [] : [said]),
    ...eccFaults(gpu),
    ...memoryFaults(gpu),
    ...(used === null || total === null ? ["the used memory is not told"] : []),
    ...(uuid === null || !uuid.startsWith("GPU-") ? ["the UUID is not told"] : []),
  ];
  return {
    pci,
    uuid,
    serial: known(textAt(gpu, "serial")),
    vbios: known(textAt(gpu, "vbios_version")),
    driver,
    memoryTotalMib: total,
    memoryUsedMib: used,
    processes: processesOf(gpu),
    settings: {
      ...Object.fromEntries(Object.entries(SETTINGS).map(([name, path]) => [name, textAt(gpu, path)])),
      ...powerLimit(gpu),
    },
    faults,
    recommends: action,
    group: fabric === "absent" ? null : "nvswitch",
    fabric,
  };
}

/**
 * Compares the GPU's power limit with the default limit of the GPU. NVIDIA's drivers before R520 name the fields of the power limit `power_readings`
 * and `power_limit`.
 */
function powerLimit(gpu: XmlNode): Record<string, string | null> {
  const block = textAt(gpu, "gpu_power_readings") === null ? "power_readings" : "gpu_power_readings";
  const limit = textAt(gpu, `${block}/current_power_limit`) ?? textAt(gpu, `${block}/power_limit`);
  const standard = textAt(gpu, `${block}/default_power_limit`);
  if (limit === null || standard === null) return { power_limit: null };
  return { power_limit: limit === standard || isAbsent(limit) ? "default" : limit };
}

/** Throws `UnreadableXml` if the output of `nvidia-smi -q -x` is incomplete, or if its number of GPUs is not `attached_gpus`. */
export function parseNvidiaReport(text: string): GpuReport {
  const root = parseDocument(text);
  if (root.name !== "nvidia_smi_log") throw new UnreadableXml(`The root element is ${root.name}, not nvidia_smi_log.`);
  const driver = known(textAt(root, "driver_version"));
  const gpus = childrenNamed(root, "gpu").map((gpu) => gpuOf(gpu, driver));
  const attached = textAt(root, "attached_gpus");
  if (attached !== String(gpus.length))
    throw new UnreadableXml(`nvidia-smi says attached_gpus ${attached} and lists ${gpus.length}.`);
  if (new Set(gpus.map(({ pci }) => pci)).size !== gpus.length)
    throw new UnreadableXml("nvidia-smi lists a PCI address twice.");
  return { gpus };
}
