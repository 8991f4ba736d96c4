import type { ResidueJudgement } from "./residue/compare.ts";
import type { RecordFacts } from "./sanitization-build.ts";

/**
 * For each residue item (a kind of trace of a tenant, for example mounts), the sanitization record lists the findings, or why the agent could not
 * read the item.
 */
export function recordResidue(judgement: ResidueJudgement, hasBaseline: boolean): NonNullable<RecordFacts["residue"]> {
  const items = Object.entries(judgement.items).map(([item, judged]) => ({
    item,
    status: judged.state,
    names: judged.state === "found" ? judged.found.map(({ name, kind }) => `${kind}: ${name}`.slice(0, 256)) : [],
    more: judged.state === "found" ? judged.more : 0,
    reason: judged.state === "unreadable" ? judged.reason.slice(0, 256) : null,
  }));
  return { has_baseline: hasBaseline, items };
}
