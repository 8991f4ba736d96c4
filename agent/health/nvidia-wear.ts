import { childrenNamed, parseDocument, textAt, type XmlNode } from "../gpu/gpu-xml.ts";
import { type Findings, fault, fine } from "./judged.ts";

/** What `nvidia-smi -q -x` says about the wear and the temperature of one GPU. A value that the GPU does not report is null. */
export interface NvidiaWear {
  readonly pci: string;
  /** The number of memory errors over the GPU's life that the GPU corrected. */
  readonly corrected: number | null;
  /** The number of memory errors over the GPU's life that the GPU could not correct. */
  readonly uncorrected: number | null;
  readonly remappedRows: number | null;
  /** The GPU is or was slowed down because it is too hot, or because its power is too low. */
  readonly slowedBy: readonly string[];
  readonly celsius: number | null;
  readonly slowdownCelsius: number | null;
}

const numberIn = (text: string | null, unit = ""): number | null => {
  const value = new RegExp(`^(\\d+)${unit}$`).exec(text ?? "")?.[1];
  return value === undefined ? null : Number(value);
};

/**
 * The sum of the named counters of one GPU; different GPUs and drivers have different counters. Null if the GPU reports none of the named counters.
 */
function total(gpu: XmlNode, block: string, names: readonly string[]): number | null {
  const told = names.flatMap((name) => numberIn(textAt(gpu, `${block}/${name}`)) ?? []);
  return told.length === 0 ? null : told.reduce((sum, one) => sum + one, 0);
}

const UNCORRECTED = [
  "sram_uncorrectable",
  "sram_uncorrectable_parity",
  "sram_uncorrectable_secded",
  "dram_uncorrectable",
];

/** The reasons for a lowered GPU clock that indicate a fault of cooling or power. Drivers before R535 call the block `clocks_throttle_reasons`. */
const REASONS = ["hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"];
const REASON_BLOCKS = [
  ["clocks_event_reasons", "clocks_event_reason"],
  ["clocks_throttle_reasons", "clocks_throttle_reason"],
] as const;

const slowedBy = (gpu: XmlNode): string[] =>
  REASONS.filter((reason) =>
    REASON_BLOCKS.some(([block, prefix]) => textAt(gpu, `${block}/${prefix}_${reason}`) === "Active"),
  );

export function parseNvidiaWear(text: string): NvidiaWear[] {
  return childrenNamed(parseDocument(text), "gpu").map((gpu) => ({
    pci: textAt(gpu, "pci/pci_bus_id") ?? gpu.attributes["id"] ?? "?",
    corrected: total(gpu, "ecc_errors/aggregate", ["sram_correctable", "dram_correctable"]),
    uncorrected: total(gpu, "ecc_errors/aggregate", UNCORRECTED),
    remappedRows: total(gpu, "remapped_rows", ["remapped_row_corr", "remapped_row_unc"]),
    slowedBy: slowedBy(gpu),
    celsius: numberIn(textAt(gpu, "temperature/gpu_temp"), " C"),
    slowdownCelsius: numberIn(textAt(gpu, "temperature/gpu_temp_slow_threshold"), " C"),
  }));
}

/**
 * A GPU remaps rows of its memory for as long as it has spare rows. With `MANY_REMAPPED_ROWS` remapped rows or more, a GPU will soon run out of spare
 * rows.
 */
const MANY_REMAPPED_ROWS = 8;
/** A GPU becomes hot at less than `HOT_BELOW` °C below its slowdown temperature, and is hot until it is `COOL_ABOVE` °C below that temperature. */
const HOT_BELOW = 2;
const COOL_ABOVE = 5;

/**
 * `wasWorn` is true if the previous check found a GPU hot or worn, so that a temperature near the limit does not change the condition at each check.
 */
export function judgeNvidiaWear(gpus: readonly NvidiaWear[], wasWorn: boolean): Findings {
  const distance = wasWorn ? COOL_ABOVE : HOT_BELOW;
  const faults = gpus.flatMap(({ pci, remappedRows, celsius, slowdownCelsius, slowedBy: reasons }) => [
    ...((remappedRows ?? 0) >= MANY_REMAPPED_ROWS ? [`${pci}: ${remappedRows} rows of its memory are remapped`] : []),
    ...(reasons.length > 0 ? [`${pci}: slowed down by ${reasons.join(", ")}`] : []),
    ...(celsius !== null && slowdownCelsius !== null && slowdownCelsius - celsius < distance
      ? [`${pci}: ${celsius} °C, and it slows down at ${slowdownCelsius} °C`]
      : []),
  ]);
  const sum = (of: "corrected" | "uncorrected"): number => gpus.reduce((all, gpu) => all + (gpu[of] ?? 0), 0);
  const counted = `${sum("corrected")} corrected and ${sum("uncorrected")} uncorrected memory errors in the life of ${gpus.length} GPUs`;
  return { "health.gpu_wear": faults.length > 0 ? fault("GpuWorn", faults) : fine(counted) };
}
