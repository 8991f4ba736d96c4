import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";
import { pciAddress } from "./gpu-state.ts";

export interface KernelFault {
  readonly pci: string | null;
  /** NVIDIA's number of a GPU fault (Xid), for example 79 for a GPU off the PCI bus, or null for AMD's driver. */
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

/**
 * Reads the GPU faults from the output of `journalctl -k -o json`, which has one JSON object in each line. Throws for a line that is not an object
 * with a message, because an unreadable log does not prove that no fault happened.
 */
export function kernelFaults(vendor: GpuVendor, journal: string): readonly KernelFault[] {
  return journal.split("\n").flatMap((line) => {
    if (line.trim() === "") return [];
    const text = messageOf(JSON.parse(line));
    const found = vendor === "nvidia" ? XID.exec(text) : AMD_FAULT.exec(text);
    if (found === null) return [];
    const [, pci = "", number = ""] = found;
    return [{ pci: addressOf(pci), xid: vendor === "nvidia" ? Number(number) : null, text: text.slice(0, MOST_TEXT) }];
  });
}

/** journald writes a log message that is not valid UTF-8 as a list of bytes, and a log message that is too long as null. */
function messageOf(entry: unknown): string {
  const message = typeof entry === "object" && entry !== null && "MESSAGE" in entry ? entry.MESSAGE : undefined;
  if (typeof message === "string") return message;
  if (Array.isArray(message)) return Buffer.from(message.map(Number)).toString("latin1");
  if (message === null) return "";
  throw new Error("A line of the kernel's log has no message.");
}

export const isOffTheBus = ({ xid }: KernelFault): boolean => xid !== null && OFF_THE_BUS.has(xid);
