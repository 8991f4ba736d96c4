import type { ResidueJudgement } from "./residue/compare.ts";
import type { RecordFacts } from "./sanitization-build.ts";

/** The sanitization record lists for each residue item its findings, or why the item is unreadable. */
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
