import type { ResidueSnapshot } from "./snapshot.ts";

const PREFIX = "disk ";

/**
 * The name of the entry for a disk with this serial number in the residue item `disks`. The entry of a disk without a serial number has a name that
 * does not begin with `disk `.
 */
export const diskEntryName = (serial: string): string => `${PREFIX}${serial}`;

/**
 * Returns the serial numbers of the disks in a residue snapshot (the agent's report of what is on the host), or null if the agent could not read the
 * disks.
 */
export function disksOf(snapshot: ResidueSnapshot | null): readonly string[] | null {
  const disks = snapshot?.disks;
  if (disks === undefined || "unreadable" in disks) return null;
  return disks.entries.flatMap(({ name }) => (name.startsWith(PREFIX) ? [name.slice(PREFIX.length)] : []));
}
