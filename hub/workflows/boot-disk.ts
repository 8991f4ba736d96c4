import type { MaasBlockDevice } from "../maas/port.ts";

export type BootDiskSearch =
  | { readonly kind: "found"; readonly disk: MaasBlockDevice }
  | { readonly kind: "missing" }
  | { readonly kind: "ambiguous"; readonly disks: readonly MaasBlockDevice[] };

/**
 * The BOSS card among the disks (lifecycle 4.3): the one physical disk whose model, name or id_path matches the profile's pattern.
 * Two matches are no answer: the wrong one would be erased.
 */
export function findBootDisk(disks: readonly MaasBlockDevice[], pattern: string): BootDiskSearch {
  const matches = matcher(pattern);
  const found = disks.filter((disk) => disk.type === "physical" && [disk.model, disk.name, disk.idPath].some(matches));
  const [disk] = found;
  if (disk === undefined) return { kind: "missing" };
  return found.length === 1 ? { kind: "found", disk } : { kind: "ambiguous", disks: found };
}

/** A pattern that is no regular expression is taken literally. */
function matcher(pattern: string): (text: string) => boolean {
  const expression = asExpression(pattern);
  if (expression !== null) return (text) => expression.test(text);
  return (text) => text.toLowerCase().includes(pattern.toLowerCase());
}

function asExpression(pattern: string): RegExp | null {
  try {
    return new RegExp(pattern, "i");
  } catch {
    return null;
  }
}
