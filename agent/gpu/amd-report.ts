import { z } from "zod";
import { amdUuidOfFile } from "../gpu-memory/amd-topology.ts";
import { messageOf } from "../message-of.ts";
import { type GpuProcess, type GpuReport, type GpuState, pciAddress } from "./gpu-state.ts";

class UnreadableReport extends Error {
  override readonly name = "UnreadableReport";
}

export interface AmdOutputs {
  readonly static: string;
  readonly metric: string;
  readonly "bad-pages": string;
  readonly process: string;
}
export const AMD_COMMANDS = ["static", "metric", "bad-pages", "process"] as const;

/**
 * The files that the agent reads for each AMD GPU below `/sys/bus/pci/devices/<address>`. The id of a GPU's XGMI hive is in one of two files,
 * depending on the kernel.
 */
export const AMD_FILES = [
  "mem_info_vram_total",
  "mem_info_vram_used",
  "mem_info_gtt_used",
  "current_compute_partition",
  "current_memory_partition",
  "xgmi_hive_id",
  "xgmi_hive_info/xgmi_hive_id",
  "run_cleaner_shader",
  "unique_id",
] as const;
export type AmdFile = (typeof AMD_FILES)[number];
export type AmdFiles = Readonly<Partial<Record<AmdFile, string>>>;

const Text = z.union([z.string(), z.number()]).transform(String);
const Gpu = z.looseObject({ gpu: z.int().min(0) });
const Rows = z.array(Gpu).max(64);
/** The tool amd-smi of ROCm 7 prints an object with the list of GPUs in `gpu_data`, and older releases print only the list. */
const Output = z.union([Rows, z.looseObject({ gpu_data: Rows }).transform(({ gpu_data }) => gpu_data)]);

/** amd-smi prints the text `N/A` instead of a value or a group of values that it cannot read. */
const UNKNOWN = "N/A";
const Firmware = z.union([
  z.literal(UNKNOWN).transform(() => undefined),
  z.looseObject({ version: Text.optional(), part_number: Text.optional() }),
]);
const Static = z.looseObject({
  asic: z.looseObject({ asic_serial: Text.optional() }),
  bus: z.looseObject({ bdf: z.string() }),
  vbios: Firmware.optional(),
  /** Since ROCm 7, amd-smi prints the facts about the firmware in the object `ifwi` instead of `vbios`. */
  ifwi: Firmware.optional(),
  /** The amd-smi of ROCm 7.2 may print the driver's version in the field `driver_version` instead of `version`. */
  driver: z.looseObject({ version: Text.optional(), driver_version: Text.optional() }).optional(),
  ras: z.union([z.looseObject({ ecc_block_state: z.unknown() }), z.string()]).optional(),
});
const Metric = z.looseObject({
  ecc: z.looseObject({ total_uncorrectable_count: Text.optional(), total_deferred_count: Text.optional() }),
  xgmi_err: z.unknown().optional(),
});
const BadPages = z.looseObject({ pending: z.unknown(), un_res: z.unknown().optional() });
const Processes = z.looseObject({ process_list: z.array(z.looseObject({ process_info: z.unknown() })) });
const ProcessInfo = z.looseObject({ pid: z.int(), name: Text.optional() });

function rowsOf(command: string, output: string): z.output<typeof Rows> {
  // amd-smi may print warnings before the JSON, for example about the user's groups.
  const start = output.search(/^[[{]/m);
  try {
    return Output.parse(JSON.parse(start < 0 ? output : output.slice(start)));
  } catch (error) {
    // The message of a `SyntaxError` repeats a piece of the parsed output, which may contain a piece of a secret that the tool printed.
    const why = error instanceof SyntaxError ? "it is not JSON" : messageOf(error);
    throw new UnreadableReport(`The output of amd-smi ${command} is not readable: ${why.slice(0, 200)}`);
  }
}

function rowOf<T>(command: string, rows: z.output<typeof Rows>, gpu: number, schema: z.ZodType<T>): T {
  const found = rows.filter((row) => row.gpu === gpu);
  const parsed = schema.safeParse(found[0]);
  if (found.length === 1 && parsed.success) return parsed.data;
  throw new UnreadableReport(`amd-smi ${command} has no readable entry for GPU ${gpu}.`);
}

const known = (text: string | undefined): string | null => (text === undefined || text === UNKNOWN ? null : text);

/** In the output of amd-smi, the list of bad memory pages may be missing only for a GPU without error correction. */
const isNone = (value: unknown, hasEcc: boolean): boolean =>
  (Array.isArray(value) && value.length === 0) ||
  (value === UNKNOWN && !hasEcc) ||
  (typeof value === "string" && /^no bad pages/i.test(value.trim()));

function hasErrorCorrection(ras: z.output<typeof Static>["ras"]): boolean {
  const blocks = typeof ras === "object" ? ras.ecc_block_state : ras;
  return typeof blocks === "object" && blocks !== null;
}

/** The faults that an AMD GPU's error counters show. Counters of uncorrectable errors may be missing only on a GPU without error correction. */
function eccFaults(metric: z.output<typeof Metric>, hasEcc: boolean): string[] {
  return (["total_uncorrectable_count", "total_deferred_count"] as const).flatMap((name) => {
    const value = metric.ecc[name] ?? UNKNOWN;
    // amd-smi before ROCm 6.3 does not count deferred errors.
    const mayBeAbsent = !hasEcc || name === "total_deferred_count";
    return value === "0" || (value === UNKNOWN && mayBeAbsent) ? [] : [`${name} is ${value}`];
  });
}

/**
 * The states of a GPU's links that mean no error. The amd-smi of ROCm 6 prints the whole name of a link's state, for example
 * `AMDSMI_XGMI_STATUS_NO_ERRORS`.
 */
const NO_LINK_ERRORS: readonly unknown[] = [undefined, UNKNOWN, 0, "NO_ERRORS", "AMDSMI_XGMI_STATUS_NO_ERRORS"];

function linkFaults(state: unknown): string[] {
  if (NO_LINK_ERRORS.includes(state)) return [];
  return [`xgmi_err is ${JSON.stringify(state).slice(0, 60)}`];
}

function processesOf(list: z.output<typeof Processes>["process_list"]): readonly GpuProcess[] | null {
  const found = list.map(({ process_info }) => {
    if (process_info === "No running processes detected") return "none" as const;
    const parsed = ProcessInfo.safeParse(process_info);
    return parsed.success ? { pid: parsed.data.pid, name: parsed.data.name ?? "?" } : null;
  });
  return found.includes(null) ? null : found.filter((one) => one !== null && one !== "none");
}

const mib = (bytes: string | undefined): number | null =>
  bytes !== undefined && /^\d+$/.test(bytes) ? Math.ceil(Number(bytes) / 2 ** 20) : null;

function hiveOf(files: AmdFiles): string | null {
  const id = files["xgmi_hive_info/xgmi_hive_id"] ?? files.xgmi_hive_id;
  return id === undefined || /^(0x)?0*$/i.test(id) ? null : `hive ${id}`;
}

/**
 * Joins, for each AMD GPU, the outputs of amd-smi with the amdgpu driver's files, which `files` has by PCI address. Throws `UnreadableReport` if one
 * output of amd-smi lacks a GPU that another output lists.
 */
export function parseAmdReport(outputs: AmdOutputs, files: Readonly<Record<string, AmdFiles>>): GpuReport {
  const [statics, metrics, pages, processes] = AMD_COMMANDS.map((command) => rowsOf(command, outputs[command]));
  const gpus = (statics ?? []).map((row): GpuState => {
    const facts = rowOf("static", statics ?? [], row.gpu, Static);
    const metric = rowOf("metric", metrics ?? [], row.gpu, Metric);
    const bad = rowOf("bad-pages", pages ?? [], row.gpu, BadPages);
    const running = rowOf("process", processes ?? [], row.gpu, Processes);
    const pci = pciAddress(facts.bus.bdf);
    if (pci === null) throw new UnreadableReport(`amd-smi says that GPU ${row.gpu} has the address ${facts.bus.bdf}.`);
    const own = files[pci] ?? {};
    const firmware = facts.ifwi ?? facts.vbios;
    const hasEcc = hasErrorCorrection(facts.ras);
    const faults = [
      ...eccFaults(metric, hasEcc),
      ...(isNone(bad.pending, hasEcc) ? [] : ["pages wait for their retirement"]),
      ...(bad.un_res === undefined || isNone(bad.un_res, hasEcc) ? [] : ["pages could not be retired"]),
      ...linkFaults(metric.xgmi_err),
      ...(mib(own.mem_info_vram_used) === null ? ["the used memory is not told"] : []),
    ];
    return {
      pci,
      uuid: amdUuidOfFile(own.unique_id),
      serial: known(facts.asic.asic_serial),
      vbios: known(firmware?.version) ?? known(firmware?.part_number),
      driver: known(facts.driver?.version) ?? known(facts.driver?.driver_version),
      memoryTotalMib: mib(own.mem_info_vram_total),
      memoryUsedMib: mib(own.mem_info_vram_used),
      processes: processesOf(running.process_list),
      settings: {
        compute_partition: own.current_compute_partition ?? null,
        memory_partition: own.current_memory_partition ?? null,
      },
      faults,
      recommends: faults.length === 0 ? "none" : "unknown",
      group: hiveOf(own),
      fabric: "absent",
    };
  });
  return { gpus: [...byAddress(gpus).values()] };
}

/** Merges the partitions of each GPU by PCI address, because amd-smi lists each partition as a GPU. One reset of a GPU resets all its partitions. */
function byAddress(partitions: readonly GpuState[]): ReadonlyMap<string, GpuState> {
  const gpus = new Map<string, GpuState>();
  for (const one of partitions) {
    const first = gpus.get(one.pci);
    if (first === undefined) gpus.set(one.pci, one);
    else
      gpus.set(one.pci, {
        ...first,
        faults: [...new Set([...first.faults, ...one.faults])],
        recommends: first.recommends === "none" ? one.recommends : first.recommends,
        processes: first.processes === null || one.processes === null ? null : [...first.processes, ...one.processes],
      });
  }
  return gpus;
}

export function filesByAddress(output: string): Readonly<Record<string, AmdFiles>> {
  const found: Record<string, Partial<Record<AmdFile, string>>> = {};
  for (const line of output.split("\n")) {
    const parts = /\/sys\/bus\/pci\/devices\/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\/([a-z_/]+):(.*)$/.exec(line);
    const [, pci = "", name = "", text = ""] = parts ?? [];
    const file = AMD_FILES.find((one) => one === name);
    if (file !== undefined) found[pci] = { ...found[pci], [file]: text.trim() };
  }
  return found;
}
