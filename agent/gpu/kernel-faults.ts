import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";
import { pciAddress } from "./gpu-state.ts";

export interface KernelFault {
  readonly pci: string | null;
  /** NVIDIA's number of the fault (Xid), for example 79 for a GPU off the PCI bus, or null for AMD's driver. */
  readonly xid: number | null;
  readonly text: string;
}

const XID = /NVRM: Xid \(PCI:([0-9a-f:.]+)\): (\d+)/i;
const AMD_FAULT =
  /amdgpu ([0-9a-f:.]+): amdgpu: .*(GPU reset\(\d+\) failed|GPU reset end with ret = -|ring \S+ timeout|uncorrectable|GPU recovery failed|device lost from bus)/i;
/** The Xids of GPUs that have left the PCI bus, which only a power cycle repairs. */
const OFF_THE_BUS: ReadonlySet<number> = new Set([79]);
const MOST_TEXT = 200;

const addressOf = (text: string): string | null => pciAddress(text) ?? pciAddress(`${text}.0`);

/** A step of the wall clock, for example by NTP, does not change the monotonic clock. */
export interface Moment {
  readonly wallMs: number;
  /** Microseconds of the kernel's clock `CLOCK_MONOTONIC`, by which journald stamps each entry of its journal. */
  readonly monotonicUs: number;
}

export const presentMoment = (): Moment => ({
  wallMs: Date.now(),
  monotonicUs: Number(process.hrtime.bigint() / 1000n),
});

/**
 * The wall-clock time, in seconds, from which `journalctl --since` lists every entry after `start`. The start time that `journalStart` computes for
 * `journalctl --since` is right even if the wall clock was set after the moment `start`. If the wall clock was set, earlier journal entries have
 * times of the old wall clock, and later entries have times of the new one.
 */
export const journalStart = (start: Moment, now: Moment): number =>
  Math.floor(Math.min(start.wallMs, now.wallMs - (now.monotonicUs - start.monotonicUs) / 1000) / 1000);

/**
 * Reads the GPU faults since the monotonic time `sinceUs` from the output of `journalctl -k -o json`, which has one JSON object in each line. Throws
 * if a line of journalctl's output is not an object with a message, because an unreadable log does not prove that the kernel reported no fault.
 */
export function kernelFaults(vendor: GpuVendor, journal: string, sinceUs: number): readonly KernelFault[] {
  return journal.split("\n").flatMap((line) => {
    if (line.trim() === "") return [];
    const entry: unknown = JSON.parse(line);
    if (isBefore(entry, sinceUs)) return [];
    return kernelFaultIn(vendor, messageOf(entry)) ?? [];
  });
}

/** Returns the GPU fault that a kernel message reports, or null for any other message. */
export function kernelFaultIn(vendor: GpuVendor, text: string): KernelFault | null {
  const found = vendor === "nvidia" ? XID.exec(text) : AMD_FAULT.exec(text);
  if (found === null) return null;
  const [, pci = "", number = ""] = found;
  return { pci: addressOf(pci), xid: vendor === "nvidia" ? Number(number) : null, text: text.slice(0, MOST_TEXT) };
}

/**
 * True if an entry of the systemd journal is older than the given monotonic time. An entry of the systemd journal without a readable monotonic time
 * does not count as older.
 */
function isBefore(entry: unknown, sinceUs: number): boolean {
  if (typeof entry !== "object" || entry === null || !("__MONOTONIC_TIMESTAMP" in entry)) return false;
  const at = entry.__MONOTONIC_TIMESTAMP;
  return typeof at === "string" && Number(at) < sinceUs;
}

/** The service journald writes a message that is not valid UTF-8 as a list of bytes, and a message that is too long as null. */
function messageOf(entry: unknown): string {
  const message = typeof entry === "object" && entry !== null && "MESSAGE" in entry ? entry.MESSAGE : undefined;
  if (typeof message === "string") return message;
  if (Array.isArray(message)) return Buffer.from(message.map(Number)).toString("latin1");
  if (message === null) return "";
  throw new Error("A line of the kernel's log has no message.");
}

/** Whether two PCI addresses agree in all but the PCI function, which NVIDIA's driver leaves out when it logs a GPU. */
export const isSamePlace = (a: string, b: string): boolean => a.slice(0, -2) === b.slice(0, -2);

export const isOffTheBus = ({ xid }: KernelFault): boolean => xid !== null && OFF_THE_BUS.has(xid);
