import { type TurnoverFacts, turnoverMode } from "./turnover-mode.ts";

/**
 * The residue items (kinds of traces that a tenant may leave on a host) that a soft reset compares with the node's baseline and that the baseline
 * lacks, because an older agent did not know them. A residue item that the agent could not read does not count as lacking in the baseline.
 * `BaselineLack` is empty for a complete baseline, and null for a node without a baseline.
 */
export type BaselineLack = readonly string[] | null;

export const lacksNothing = (lack: BaselineLack): boolean => lack !== null && lack.length === 0;

/**
 * Returns the residue items that the cleaning after the node's next tenant would miss in the node's baseline. If the cleaning after the next tenant
 * is a reimage, no residue item is missing, because the agent takes a new baseline after the reimage.
 */
export const lackAtTurnover = (facts: TurnoverFacts, lack: BaselineLack): BaselineLack =>
  turnoverMode(facts) === "soft_reset" ? lack : [];

const NAMED = 5;

/** Returns a text for an operator that says what a node has instead of a complete baseline, for example `no residue baseline`. */
export function toldLack(lack: BaselineLack): string {
  if (lack === null) return "no residue baseline";
  const more = lack.length > NAMED ? ` and ${lack.length - NAMED} more items` : "";
  return `a residue baseline without ${lack.slice(0, NAMED).join(", ")}${more}`;
}
