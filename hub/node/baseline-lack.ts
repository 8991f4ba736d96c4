import { type TurnoverFacts, turnoverMode } from "./turnover-mode.ts";

/**
 * The residue items that a soft reset compares and that a node's baseline does not have: an older agent did not know them, or the agent could not
 * read them. The list is empty for a complete baseline. `BaselineLack` is null for a node without a baseline.
 */
export type BaselineLack = readonly string[] | null;

export const lacksNothing = (lack: BaselineLack): boolean => lack !== null && lack.length === 0;

/** Returns what the turnover after the node's next tenant would miss in the baseline. A reimage takes a new baseline, so it misses nothing. */
export const lackAtTurnover = (facts: TurnoverFacts, lack: BaselineLack): BaselineLack =>
  turnoverMode(facts) === "soft_reset" ? lack : [];

const NAMED = 5;

/** Says for an operator what a node has instead of a complete baseline, for example `no residue baseline`. */
export function toldLack(lack: BaselineLack): string {
  if (lack === null) return "no residue baseline";
  const more = lack.length > NAMED ? ` and ${lack.length - NAMED} more items` : "";
  return `a residue baseline without ${lack.slice(0, NAMED).join(", ")}${more}`;
}
