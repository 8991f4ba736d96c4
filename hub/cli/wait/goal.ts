import { UsageError } from "../errors.ts";
import type { Noun } from "../nouns/noun.ts";
import { at, cellOf } from "../output/cells.ts";

type Item = Readonly<Record<string, unknown>>;

/** Whether an object has reached the state for which a command waits, has not yet reached it, or can never reach it. */
export type Reached = "yes" | "no" | "never";

export interface Goal {
  readonly text: string;
  /** Says whether an object is in the state that the command waits for, or can never reach it without a person; `null` stands for an absent object. */
  readonly reached: (item: Item | null) => Reached;
}

const OPERATIONS = ["onboardings", "decommissions", "operations"];
const SUCCEEDED = ["completed", "reconciled"];
const ENDED = [...SUCCEEDED, "cancelled", "failed_retryable", "failed_manual_intervention"];

/**
 * For operations and batches, `muster wait` waits for their end by default; for every other kind of object the operator must name the state to wait
 * for.
 */
export const standardGoal = (noun: Noun): string | undefined =>
  OPERATIONS.includes(noun.plural) || noun.plural === "batches" ? "done" : undefined;

export function goalOf(noun: Noun, text: string): Goal {
  if (text === "deleted") return { text, reached: isGone };
  if (text === "done") return { text, reached: doneOf(noun) };
  const [, field = "", value = ""] = /^([\w.]+)=(.+)$/.exec(text) ?? [];
  if (field === "condition") return { text, reached: conditionOf(noun, value) };
  if (field === "")
    throw new UsageError(
      `--for takes done, deleted, condition=TYPE or FIELD=VALUE, for example status=active; not ${text}.`,
    );
  return { text, reached: (item) => fieldReached(noun, item, field, value) };
}

const isGone = (item: Item | null): Reached =>
  item === null || item["status"] === "deleted" || item["status"] === "ended" ? "yes" : "no";

function doneOf(noun: Noun): Goal["reached"] {
  if (noun.plural === "batches")
    return (item) => {
      if (item === null) return "never";
      if (item["done"] !== true) return "no";
      return Number(item["failed"]) + Number(item["cancelled"]) === 0 ? "yes" : "never";
    };
  if (!OPERATIONS.includes(noun.plural))
    throw new UsageError(`A ${noun.singular} has no end. Name a state, for example --for status=active.`);
  return (item) => {
    const status = String(item?.["status"]);
    return SUCCEEDED.includes(status) ? "yes" : ENDED.includes(status) || item === null ? "never" : "no";
  };
}

function conditionOf(noun: Noun, text: string): Goal["reached"] {
  if (noun.plural !== "nodes") throw new UsageError("Only nodes have conditions.");
  const [type = "", value = "True"] = text.split("=");
  return (item) => {
    if (item === null || item["status"] === "deleted") return "never";
    const conditions = (item["conditions"] ?? []) as Item[];
    return conditions.some((one) => one["type"] === type && one["status"] === value) ? "yes" : "no";
  };
}

/** An operation that has ended keeps its status, and so does an object that is deleted or ended, so a wait for another status would never end. */
function fieldReached(noun: Noun, item: Item | null, field: string, value: string): Reached {
  if (item === null) return "never";
  const present = at(item, field === "status" && !("status" in item) ? "state" : field);
  if (present === undefined) throw new UsageError(`A ${noun.singular} has no field ${field}.`);
  if (cellOf(present) === value || String(present) === value) return "yes";
  const ended = OPERATIONS.includes(noun.plural) ? ENDED : ["deleted", "ended"];
  return ended.includes(String(item["status"])) ? "never" : "no";
}
