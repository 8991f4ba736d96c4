import type { ResidueSnapshot } from "./snapshot.ts";

const PREFIX = "disk ";

/**
 * The name of a disk in the residue item `disks`. In the residue item `disks`, the name of a disk without a serial number does not begin with `disk
 * `.
 */
export const diskEntryName = (serial: string): string => `${PREFIX}${serial}`;

/** Returns the serial numbers of the disks in the residue snapshot, or null if the agent could not read the disks. */
export function disksOf(snapshot: ResidueSnapshot | null): readonly string[] | null {
  const disks = snapshot?.disks;
  if (disks === undefined || "unreadable" in disks) return null;
  return disks.entries.flatMap(({ name }) => (name.startsWith(PREFIX) ? [name.slice(PREFIX.length)] : []));
}
