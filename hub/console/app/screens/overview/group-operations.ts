import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import type { OperationVerb } from "../../verbs/operation-verb.ts";
import type { Overview } from "./overview-question.ts";

export type Group = Overview["waiting"][number];
export type Operation = Answer<"listOperations">["items"][number];

const PAGE = 200;
/** The console searches at most this many failed operations of a failure class for the operations of one group. */
const MOST_LOOKED_AT = 2_000;
/** The overview's word for a missing failure class or error code. */
const NONE = "unknown";
/**
 * At most this many failed operations of a group get the recommended verb, such as retry, in one step. A group with more failed operations than
 * `MOST_AT_ONCE` gets the recommended verb in several steps.
 */
const MOST_AT_ONCE = 200;

/** Says whether a failed operation belongs to the group: it has the group's failure class, error code, next action and next verb. */
export const isOf = (
  group: Pick<Group, "failure_class" | "error_code" | "next_action" | "next_verb">,
  one: Pick<Operation, "failure_class" | "error_code" | "next_action" | "next_verb">,
): boolean =>
  (one.failure_class ?? NONE) === group.failure_class &&
  (one.error_code ?? NONE) === group.error_code &&
  one.next_action === group.next_action &&
  one.next_verb === group.next_verb;

const classOf = ({ failure_class: name }: Group): string | undefined => (name === NONE ? undefined : name);

/** Returns the failed operations of the group, the newest first, but at most `MOST_AT_ONCE` of them. */
export async function operationsOf(group: Group, signal: AbortSignal): Promise<Operation[]> {
  const found: Operation[] = [];
  let cursor: string | undefined;
  for (let looked = 0; looked < MOST_LOOKED_AT && found.length < MOST_AT_ONCE; looked += PAGE) {
    const query = { status: "failed", failure_class: classOf(group), limit: PAGE, cursor };
    const page = await read(api.GET("/api/v1/admin/operations", { params: { query }, signal }));
    found.push(...page.items.filter((one) => isOf(group, one)));
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  return found.slice(0, MOST_AT_ONCE);
}

/** Which failed operations of a group would get the recommended verb, such as retry. */
export interface Plan {
  readonly verb: OperationVerb;
  readonly taken: readonly Operation[];
  /** The operations that already got a verb, such as retry, which has not taken effect yet. */
  readonly waiting: readonly Operation[];
}

export const planOf = (verb: OperationVerb, operations: readonly Operation[]): Plan => ({
  verb,
  taken: operations.filter(({ pending_verb: pending }) => pending === null),
  waiting: operations.filter(({ pending_verb: pending }) => pending !== null),
});
