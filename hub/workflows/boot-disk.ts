import { createContext, Script } from "node:vm";
import type { MaasBlockDevice } from "../maas/port.ts";

export type BootDiskSearch =
  | { readonly kind: "found"; readonly disk: MaasBlockDevice }
  | { readonly kind: "missing" }
  | { readonly kind: "ambiguous"; readonly disks: readonly MaasBlockDevice[] }
  /** The pattern takes more time than any honest one, e.g. `(a+)+$`: it tries every way to read a text. */
  | { readonly kind: "endless" };

/** Nothing else of the hub runs meanwhile. An ordinary pattern takes microseconds; the rest is for a machine that is busy. */
const SEARCH_WITHIN_MS = 1_000;
const CONTEXT = createContext({ texts: [] as readonly (readonly string[])[], expression: /x/ });
const SEARCH = new Script("texts.map((of) => of.map((text) => expression.test(text)).includes(true))");

/**
 * The BOSS card among the disks (lifecycle 4.3): the one physical disk whose model, name or id_path matches the profile's pattern.
 * Two matches are no answer: the wrong one would be erased.
 */
export function findBootDisk(disks: readonly MaasBlockDevice[], pattern: string): BootDiskSearch {
  const physical = disks.filter((disk) => disk.type === "physical");
  const hits = matches(
    physical.map((disk) => [disk.model, disk.name, disk.idPath]),
    pattern,
  );
  if (hits === null) return { kind: "endless" };
  const found = physical.filter((_, at) => hits[at] === true);
  const [disk] = found;
  if (disk === undefined) return { kind: "missing" };
  return found.length === 1 ? { kind: "found", disk } : { kind: "ambiguous", disks: found };
}

/** Which of the lists have a text that holds the pattern; one that is no regular expression is taken literally. Null: it took too long. */
function matches(texts: readonly (readonly string[])[], pattern: string): boolean[] | null {
  const expression = asExpression(pattern);
  if (expression === null)
    return texts.map((of) => of.some((text) => text.toLowerCase().includes(pattern.toLowerCase())));
  try {
    // Only a script of its own can be ended in the middle of a match.
    Object.assign(CONTEXT, { texts, expression });
    return [...SEARCH.runInContext(CONTEXT, { timeout: SEARCH_WITHIN_MS })];
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return null;
    throw error;
  }
}

function asExpression(pattern: string): RegExp | null {
  try {
    return new RegExp(pattern, "i");
  } catch {
    return null;
  }
}
