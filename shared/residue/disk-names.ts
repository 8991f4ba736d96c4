import type { ResidueSnapshot } from "./snapshot.ts";

const PREFIX = "disk ";

/** The name of a disk in the residue item `disks`. The agent reports a disk without a serial number by another name. */
export const diskEntryName = (serial: string): string => `${PREFIX}${serial}`;

/** The serial numbers of the disks in a residue snapshot, or null if the snapshot does not tell the disks. */
export function disksOf(snapshot: ResidueSnapshot | null): readonly string[] | null {
  const disks = snapshot?.disks;
  if (disks === undefined || "unreadable" in disks) return null;
  return disks.entries.flatMap(({ name }) => (name.startsWith(PREFIX) ? [name.slice(PREFIX.length)] : []));
}
