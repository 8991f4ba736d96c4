import type { ResidueSnapshot } from "./snapshot.ts";

const PREFIX = "disk ";

/**
 * The name of a disk in the residue item `disks`. The agent gives a disk without a serial number another kind of name in the residue item `disks`.
 */
export const diskEntryName = (serial: string): string => `${PREFIX}${serial}`;

/** The list of serial numbers is null if the residue snapshot does not tell the disks. */
export function disksOf(snapshot: ResidueSnapshot | null): readonly string[] | null {
  const disks = snapshot?.disks;
  if (disks === undefined || "unreadable" in disks) return null;
  return disks.entries.flatMap(({ name }) => (name.startsWith(PREFIX) ? [name.slice(PREFIX.length)] : []));
}
