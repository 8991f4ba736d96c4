import type { MaasBlockDevice } from "../../maas/port.ts";
import { holdPattern } from "./disk-pattern.ts";

export type BootDiskSearch =
  | { readonly kind: "found"; readonly disk: MaasBlockDevice }
  | { readonly kind: "missing" }
  | { readonly kind: "ambiguous"; readonly disks: readonly MaasBlockDevice[] }
  /**
   * The result `endless` means that the profile's pattern for the boot disk takes far too long to match. For example, the pattern `(a+)+$` backtracks
   * through every way to split a text.
   */
  | { readonly kind: "endless" };

/**
 * Finds the boot disk, a BOSS card: the one physical disk whose model, name or id_path matches the profile's pattern (lifecycle 4.3). Two disks that
 * match the profile's pattern are an error, because the deploy could erase the wrong disk.
 */
export function findBootDisk(disks: readonly MaasBlockDevice[], pattern: string): BootDiskSearch {
  const physical = disks.filter((disk) => disk.type === "physical");
  const hits = holdPattern(
    physical.map((disk) => [disk.model, disk.name, disk.idPath]),
    pattern,
  );
  if (hits === null) return { kind: "endless" };
  const found = physical.filter((_, at) => hits[at] === true);
  const [disk] = found;
  if (disk === undefined) return { kind: "missing" };
  return found.length === 1 ? { kind: "found", disk } : { kind: "ambiguous", disks: found };
}
