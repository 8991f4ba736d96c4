import { z } from "zod";
import { type Findings, fault, fine, named, notObserved, unreadable } from "./judged.ts";

/**
 * What a disk reports about its own health, from `smartctl --json -H -A` or from `nvme smart-log -o json`. A value that the disk does not report is
 * null.
 */
export interface DiskHealth {
  /** False if the disk predicts its own failure by its SMART status. */
  readonly passed: boolean | null;
  /** The bits of the NVMe field Critical Warning. */
  readonly criticalWarning: number | null;
  /** How much of the disk's life is used, in percent; it may be more than 100. */
  readonly usedPercent: number | null;
  readonly sparePercent: number | null;
  readonly spareThresholdPercent: number | null;
  readonly mediaErrors: number | null;
  /** The sectors of an ATA disk that wait for their reallocation, or that could not be corrected. */
  readonly badSectors: number | null;
}

const Count = z.union([z.number(), z.string().regex(/^\d+$/).transform(Number)]);

/** nvme-cli prints large counters as text, and since 2.11 the bits of the critical warning as an object. */
const NvmeLog = z.looseObject({
  critical_warning: z.union([Count, z.looseObject({ value: Count }).transform(({ value }) => value)]),
  avail_spare: Count.optional(),
  spare_thresh: Count.optional(),
  percent_used: Count.optional(),
  percentage_used: Count.optional(),
  media_errors: Count.optional(),
});

export function parseNvmeLog(text: string): DiskHealth {
  const log = NvmeLog.parse(JSON.parse(text));
  return {
    passed: null,
    criticalWarning: log.critical_warning,
    usedPercent: log.percent_used ?? log.percentage_used ?? null,
    sparePercent: log.avail_spare ?? null,
    spareThresholdPercent: log.spare_thresh ?? null,
    mediaErrors: log.media_errors ?? null,
    badSectors: null,
  };
}

/** The SMART attributes of an ATA disk that count sectors which the disk cannot read: pending, and offline uncorrectable. */
const BAD_SECTOR_ATTRIBUTES: readonly number[] = [197, 198];

const Smartctl = z.looseObject({
  smart_status: z.looseObject({ passed: z.boolean().optional() }).optional(),
  nvme_smart_health_information_log: z
    .looseObject({
      critical_warning: Count,
      available_spare: Count.optional(),
      available_spare_threshold: Count.optional(),
      percentage_used: Count.optional(),
      media_errors: Count.optional(),
    })
    .optional(),
  ata_smart_attributes: z
    .looseObject({
      table: z.array(z.looseObject({ id: z.number(), raw: z.looseObject({ value: z.number() }) })).max(256),
    })
    .optional(),
  endurance_used: z.looseObject({ current_percent: Count.optional() }).optional(),
});

/** Returns null if smartctl printed JSON without a word on the disk's health, for example because the disk is a volume of a RAID controller. */
export function parseSmartctl(text: string): DiskHealth | null {
  const said = Smartctl.parse(JSON.parse(text));
  const nvme = said.nvme_smart_health_information_log;
  const passed = said.smart_status?.passed ?? null;
  if (passed === null && nvme === undefined) return null;
  const sectors = said.ata_smart_attributes?.table.filter(({ id }) => BAD_SECTOR_ATTRIBUTES.includes(id));
  return {
    passed,
    criticalWarning: nvme?.critical_warning ?? null,
    usedPercent: nvme?.percentage_used ?? said.endurance_used?.current_percent ?? null,
    sparePercent: nvme?.available_spare ?? null,
    spareThresholdPercent: nvme?.available_spare_threshold ?? null,
    mediaErrors: nvme?.media_errors ?? null,
    badSectors: sectors === undefined ? null : Math.max(0, ...sectors.map(({ raw }) => raw.value)),
  };
}

/**
 * The bits of the NVMe field Critical Warning (NVM Express Base Specification, SMART / Health Information), each with its meaning. Bit 1 of Critical
 * Warning only reports a temperature.
 */
const CRITICAL: Readonly<Record<number, string>> = {
  0: "its spare blocks are below their threshold",
  2: "its reliability is degraded by media or internal errors",
  3: "it allows only reads",
  4: "its backup of volatile memory has failed",
  5: "its persistent memory allows only reads",
};
const TOO_HOT = 1 << 1;
const WORN_PERCENT = 90;

export type SeenDisk = { readonly name: string } & (
  | { readonly health: DiskHealth }
  /**
   * A disk is silent if no tool for its health is installed or the disk has no SMART; it is not silent if such a tool hangs or prints unreadable
   * text.
   */
  | { readonly health: null; readonly isSilent: boolean; readonly why: string }
);

function failuresOf({ passed, criticalWarning }: DiskHealth): string[] {
  const bits = Object.entries(CRITICAL).filter(([bit]) => ((criticalWarning ?? 0) & (1 << Number(bit))) !== 0);
  // True if the disk predicts its own failure, and no bit of Critical Warning says why.
  const predicted = passed === false && bits.length === 0 && (criticalWarning ?? 0) === 0;
  return [...bits.map(([, text]) => text), ...(predicted ? ["it predicts its own failure (SMART)"] : [])];
}

function wearOf(disk: DiskHealth): string[] {
  const { usedPercent, sparePercent, spareThresholdPercent, mediaErrors, badSectors, criticalWarning } = disk;
  const isSpareLow = sparePercent !== null && spareThresholdPercent !== null && sparePercent <= spareThresholdPercent;
  return [
    ...(usedPercent !== null && usedPercent >= WORN_PERCENT ? [`${usedPercent} % of its life is used`] : []),
    ...(isSpareLow ? [`it has ${sparePercent} % of its spare blocks`] : []),
    ...((mediaErrors ?? 0) > 0 ? [`it counts ${mediaErrors} media errors`] : []),
    ...((badSectors ?? 0) > 0 ? [`${badSectors} of its sectors cannot be read`] : []),
    ...(((criticalWarning ?? 0) & TOO_HOT) === 0 ? [] : ["it is too hot or too cold"]),
  ];
}

/** Judges all disks of the host. A disk whose health was not read makes the conditions of the disks Unknown, unless another disk has a fault. */
export function judgeDisks(disks: readonly SeenDisk[]): Findings {
  if (disks.length === 0) {
    const none = notObserved("The host shows no disks of its own.");
    return { "health.disks": none, "health.disk_wear": none };
  }
  const without = disks.flatMap((one) => (one.health === null ? [one] : []));
  const unread = without.map(({ name, why }) => `${name}: ${why}`);
  const broken = without.filter(({ isSilent }) => !isSilent).map(({ name, why }) => `${name}: ${why}`);
  const texts = (of: (health: DiskHealth) => string[]): string[] =>
    disks.flatMap((one) => (one.health === null ? [] : of(one.health).map((text) => `${one.name}: ${text}`)));
  const judged = (reason: string, found: readonly string[], good: string) => {
    if (found.length > 0) return fault(reason, found);
    if (broken.length > 0) return unreadable(named(broken));
    return unread.length > 0 ? notObserved(named(unread)) : fine(good);
  };
  return {
    "health.disks": judged("DiskFailing", texts(failuresOf), `${disks.length} disks report no failure`),
    "health.disk_wear": judged("DiskWorn", texts(wearOf), `${disks.length} disks report no wear`),
  };
}
