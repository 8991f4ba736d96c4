import { z } from "zod";
import { isOfProbe, ruleOf } from "./condition-types.ts";
import { ReportedCondition } from "./readiness.ts";

/** The largest numbers of groups in a readiness policy, and of requirements in one group. */
const POLICY_GROUPS = 8;
const GROUP_REQUIREMENTS = 8;

const WEEK_SECONDS = 7 * 86_400;

/** What a readiness policy asks of one condition of a node. */
export const ReadinessRequirement = z
  .strictObject({
    type: ReportedCondition.shape.type.refine(
      (type) => ruleOf(type) !== null,
      "is a type that no source may report; name another type",
    ),
    status: z.enum(["True", "False"]).describe("The status that the condition must have").default("True"),
    max_age_seconds: z
      .int()
      .min(60)
      .max(30 * 86_400)
      .nullable()
      .describe("The condition counts only for so long after its last report arrived; null for any time")
      .default(null),
    deadline_seconds: z
      .int()
      .min(60)
      .max(WEEK_SECONDS)
      .nullable()
      .describe("A condition that is missing for so long after the begin of the node's generation is overdue")
      .default(null),
  })
  .refine(({ type, status }) => status === "True" || !isOfProbe(type), {
    path: ["status"],
    error: "must be True for the condition of a probe, because a fault of the hub's network must make no node ready",
  });
export type ReadinessRequirement = z.output<typeof ReadinessRequirement>;

const Requirements = z.array(ReadinessRequirement).min(1).max(GROUP_REQUIREMENTS);

/**
 * A group of a readiness policy has the field `all`, whose requirements must all be met, or the field `any`, of whose requirements at least one must
 * be met. The schema of a readiness policy's group is one object with two optional fields, because an error about a union of two objects would not
 * name the wrong field.
 */
const ReadinessGroup = z
  .strictObject({ all: Requirements.optional(), any: Requirements.optional() })
  .refine(({ all, any }) => (all === undefined) !== (any === undefined), "must have one of the fields all and any");
export type ReadinessGroup = z.output<typeof ReadinessGroup>;

/** A node meets a readiness policy if it meets every group. Every node meets the empty policy. */
export const ReadinessPolicy = z.array(ReadinessGroup).max(POLICY_GROUPS);
export type ReadinessPolicy = z.output<typeof ReadinessPolicy>;

/**
 * The policy of a node without a profile, for example of a node of manual mode. Muster's own rules for conditions hold also for a node without a
 * profile.
 */
const DEFAULT_POLICY: ReadinessPolicy = [];

/**
 * The readiness policy of a host without an agent whose profile has no readiness policy. Muster's own rules require no condition of a host without an
 * agent, and such a host must not be ready without any report about it.
 */
const POLICY_WITHOUT_AGENT: ReadinessPolicy = [
  { all: [{ type: "host.ready", status: "True", max_age_seconds: null, deadline_seconds: null }] },
];

/** Returns the policy that holds for a node: the policy of the node's profile if it requires anything, and otherwise a default policy. */
export const policyFor = (ofProfile: ReadinessPolicy | null, runsAgent: boolean): ReadinessPolicy => {
  const asked = ofProfile ?? DEFAULT_POLICY;
  return asked.length === 0 && !runsAgent ? POLICY_WITHOUT_AGENT : asked;
};

/** The reasons for which a condition does not meet a requirement of a readiness policy. */
export const Lack = z.enum(["missing", "older_generation", "overdue", "stale", "too_old", "wrong_status", "flapping"]);
export type Lack = z.output<typeof Lack>;
