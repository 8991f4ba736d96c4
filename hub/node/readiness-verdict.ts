import {
  appliesTo,
  type Bars,
  CONDITION_TYPES,
  type ConditionRule,
  type HostFacts,
} from "../../shared/condition-types.ts";
import { heldFrom, isFlapping } from "../../shared/flapping.ts";
import type { Lack, ReadinessPolicy, ReadinessRequirement } from "../../shared/readiness-policy.ts";
import { nextActionAbout } from "./readiness-actions.ts";

export interface ConditionFacts {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly generation: number;
  readonly expiresAt: Date | null;
  /** The time, by the database's clock, at which the newest report of the condition arrived. */
  readonly receivedAt: Date;
  /** The time, by the database's clock, at which the condition got its present status in its generation. */
  readonly changedAt: Date;
  /** The time since which the condition flaps, which means that it changes its status too often; null if it has not flapped lately. */
  readonly flappingSince: Date | null;
  /**
   * True if the condition has expired, because nobody has reported the condition again in time. An expired condition counts as Unknown, whatever the
   * last report said.
   */
  readonly stale: boolean;
}

export interface ReadinessFacts {
  readonly policy: ReadinessPolicy;
  readonly host: HostFacts;
  readonly generation: number;
  /** The begin of the node's present generation. */
  readonly begunAt: Date;
  /** The time by the database's clock at which the facts about the node were read. */
  readonly now: Date;
}

/** A condition that keeps a node from being ready. */
export interface Lacking {
  readonly type: string;
  readonly wants: "True" | "False";
  readonly kind: Lack;
  /**
   * The position in the readiness policy, counted from 0, of the group that requires the condition; null if Muster's own rule, and not the policy,
   * requires it.
   */
  readonly group: number | null;
  /** The kind of the readiness policy's group that requires the condition; null if Muster's own rule, and not the policy, requires it. */
  readonly of: "all" | "any" | null;
  readonly said: Pick<ConditionFacts, "status" | "reason"> | null;
  /** The time since which the condition keeps the node from being ready in the way that `kind` names. */
  readonly since: Date;
  /** The time after which a missing condition is overdue, or a flapping one counts again; null if nothing will change without a report. */
  readonly until: Date | null;
  readonly nextAction: string;
}

export interface Verdict {
  readonly ready: boolean;
  readonly lacking: readonly Lacking[];
}

/**
 * Decides whether a node is ready: whether Muster's own rules for conditions let it take work, and whether its conditions meet the readiness policy.
 * A readiness policy's group `any` is met if one of its requirements is met.
 */
export function readinessOf(facts: ReadinessFacts, conditions: readonly ConditionFacts[]): Verdict {
  const said = new Map(conditions.map((one) => [one.type, one]));
  const own = Object.entries<ConditionRule>(CONDITION_TYPES).flatMap(([type, rule]) => {
    const { bars, tolerates } = rule;
    const one = said.get(type);
    if (!appliesTo(rule, facts.host)) return [];
    if (tolerates !== undefined && one?.reason === tolerates && one.generation === facts.generation) return [];
    const lack = barredBy(bars, one, facts);
    return lack === null ? [] : [about({ type, status: "True" }, null, null, lack, one)];
  });
  const asked = facts.policy.flatMap((group, index) => {
    const of = group.all === undefined ? "any" : "all";
    const requirements = group.all ?? group.any ?? [];
    const lacks = requirements.flatMap((one) => {
      const lack = lackOf(one, said.get(one.type), facts);
      return lack === null ? [] : [about(one, index, of, lack, said.get(one.type))];
    });
    return of === "any" && lacks.length < requirements.length ? [] : lacks;
  });
  const lacking = [...own, ...asked];
  return { ready: lacking.length === 0, lacking };
}

type When = Pick<Lacking, "kind" | "since" | "until">;

/** Returns why a condition of Muster's own type keeps work off a node; null if the condition allows work. */
export function barredBy(
  bars: Bars,
  condition: ConditionFacts | undefined,
  facts: Omit<ReadinessFacts, "policy" | "host">,
): When | null {
  if (bars === "never" || bars === "warns") return null;
  const isOfNow = condition !== undefined && condition.generation === facts.generation;
  if (!isOfNow && bars === "not_true") return null;
  return lackOf({ status: "True", max_age_seconds: null, deadline_seconds: null }, condition, facts);
}

const after = (time: Date, seconds: number): Date => new Date(time.getTime() + seconds * 1000);

/** Returns why a condition does not meet a requirement; null if it does. A condition of an earlier generation counts as missing. */
function lackOf(
  { status, max_age_seconds, deadline_seconds }: Omit<ReadinessRequirement, "type">,
  condition: ConditionFacts | undefined,
  { generation, begunAt, now }: Omit<ReadinessFacts, "policy" | "host">,
): When | null {
  if (condition === undefined || condition.generation !== generation) {
    const until = deadline_seconds === null ? null : after(begunAt, deadline_seconds);
    if (until !== null && until <= now) return { kind: "overdue", since: until, until: null };
    return { kind: condition === undefined ? "missing" : "older_generation", since: begunAt, until };
  }
  const { expiresAt, receivedAt, changedAt } = condition;
  if (condition.stale) return { kind: "stale", since: expiresAt ?? receivedAt, until: null };
  if (condition.status !== status) return { kind: "wrong_status", since: changedAt, until: null };
  const oldAt = max_age_seconds === null ? null : after(receivedAt, max_age_seconds);
  if (oldAt !== null && oldAt <= now) return { kind: "too_old", since: oldAt, until: null };
  // Only a condition with the required status must keep this status for some time before it counts as met. A condition with another status than the
  // required one counts as not met at once.
  if (condition.flappingSince === null || !isFlapping(condition, now)) return null;
  return { kind: "flapping", since: condition.flappingSince, until: heldFrom(changedAt) };
}

const about = (
  { type, status }: Pick<ReadinessRequirement, "type" | "status">,
  group: number | null,
  of: Lacking["of"],
  when: When,
  said: ConditionFacts | undefined,
): Lacking => ({
  type,
  wants: status,
  ...when,
  group,
  of,
  said: said === undefined ? null : { status: said.status, reason: said.reason },
  nextAction: nextActionAbout(type, when.kind),
});

/** One sentence for operators about a condition that a node lacks to be ready, without the next action. */
export function toldLacking({ type, wants, kind, said, since, until }: Lacking): string {
  const at = since.toISOString();
  const waits = until === null ? "" : `. The hub waits for a report until ${until.toISOString()}`;
  const texts: Readonly<Record<Lack, string>> = {
    missing: `${type} was never reported since this provisioning began at ${at}${waits}`,
    older_generation: `${type} is of an earlier provisioning, and was not reported since this provisioning began at ${at}${waits}`,
    overdue: `${type} is overdue since ${at}: nothing has reported it in this provisioning`,
    stale: `${type} is stale since ${at}`,
    wrong_status: `${type} is ${said?.status}: ${said?.reason}, since ${at}${wants === "True" ? "" : `, and must be ${wants}`}`,
    too_old: `${type} was last reported too long ago, since ${at}`,
    flapping: `${type} is ${wants} and has changed too often since ${at}. It counts if it does not change until ${until?.toISOString()}`,
  };
  return texts[kind];
}
