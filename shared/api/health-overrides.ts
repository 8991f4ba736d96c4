import { z } from "zod";
import {
  HEALTH_TEMPLATE_NAMES,
  HEALTH_TEMPLATES,
  HealthAlert,
  HealthAlerts,
  type HealthTemplate,
  isOwnOverride,
  OVERRIDE_MODES,
} from "../health-report.ts";
import { NodeId } from "../ids.ts";
import { INT4_MAX } from "../int4.ts";
import { Reason } from "./decommissions.ts";
import { Timestamp } from "./values.ts";

/**
 * A health override says what is wrong with a node until a person removes it, its time is over, or its cause is gone (decisions M9 and H1). Each
 * source has at most one health override of a node.
 */
export const HealthOverride = z.strictObject({
  source: z.string(),
  target: z.string().nullable(),
  reason: z.string(),
  /**
   * The origin of the health override: `operator:` and the name of the operator who set it, `operation:` and the id of the operation that set it,
   * `restore` after a restore of the database, or `repair:` and the id of the repair case that set it.
   */
  set_by: z.string(),
  /**
   * The weakest kind of disk erase that lifts the health override; evidence of a stronger erase lifts the override too. `needed_erase` of a health
   * override is null if no disk erase lifts the override.
   */
  needed_erase: z.enum(["quick", "secure"]).nullable(),
  since: Timestamp,
  /** A health override of the mode `replace` hides the node's other health overrides, except those that Muster itself sets. */
  mode: z.enum(OVERRIDE_MODES),
  /** The alerts that the health override raises; null for a health override that Muster itself sets, which keeps new tenants off the node. */
  alerts: z.array(HealthAlert).nullable(),
  /** False if a replacement hides all alerts of the override. Beside a replacement, an alert counts only if it prevents a release. */
  in_force: z.boolean(),
  expires_at: Timestamp.nullable(),
  /** How often a health override of this source was set; the next change may name this number as `expected_revision`. */
  revision: z.int(),
});

export const OverrideSource = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/);
/** A year. */
const MOST_MINUTES = 527_040;

export const HealthOverrideSet = z
  .strictObject({
    template: z
      .enum(HEALTH_TEMPLATE_NAMES)
      .describe("The template of the override, in place of source and alerts")
      .optional(),
    message: z.string().trim().min(1).max(1024).describe("With a template: what is wrong, for operators").optional(),
    tenant_message: z.string().trim().min(1).max(512).describe("With a template: what the tenant may know").optional(),
    source: OverrideSource.describe(
      "The name of what sets the override; it replaces the older override of this source",
    ).optional(),
    mode: z.enum(OVERRIDE_MODES).describe("replace hides the node's other overrides").optional(),
    alerts: HealthAlerts.describe("What is wrong, and what that prevents").optional(),
    expires_in_minutes: z
      .int()
      .min(1)
      .max(MOST_MINUTES)
      .describe("The override ends by itself after this time; without it, only a person ends it")
      .optional(),
    expected_revision: z
      .int()
      .min(0)
      .max(INT4_MAX)
      .describe("The change is refused unless the override of this source has this revision; 0: unless there is none")
      .optional(),
    reason: Reason,
  })
  .superRefine((given, ctx) => {
    const refuse = (field: string, message: string) => ctx.addIssue({ code: "custom", path: [field], message });
    if ((given.template === undefined) === (given.source === undefined))
      return refuse("template", "either a template or a source is needed, and not both");
    if (given.source !== undefined) return refuseOwn(given, refuse);
    for (const field of ["mode", "alerts"] as const)
      if (given[field] !== undefined) refuse(field, "belongs to a source; the template says it already");
    const hasAlert = HEALTH_TEMPLATES[given.template as HealthTemplate].alert !== null;
    if (hasAlert && given.message === undefined) refuse("message", "is needed with this template");
    if (!hasAlert && (given.message ?? given.tenant_message) !== undefined)
      refuse("message", "belongs to an alert, and this template has none");
  });
export type HealthOverrideSet = z.output<typeof HealthOverrideSet>;

interface GivenOverride {
  readonly source?: string | undefined;
  readonly mode?: string | undefined;
  readonly alerts?: readonly unknown[] | undefined;
  readonly message?: string | undefined;
  readonly tenant_message?: string | undefined;
}

function refuseOwn(
  { source = "", mode, alerts, message, tenant_message: tenant }: GivenOverride,
  refuse: (field: string, message: string) => void,
): void {
  if (isOwnOverride(source)) refuse("source", "only Muster itself sets overrides of this source");
  if (alerts === undefined) refuse("alerts", "is needed with a source");
  if (alerts?.length === 0 && mode !== "replace") refuse("alerts", "may be empty only with the mode replace");
  if ((message ?? tenant) !== undefined) refuse("message", "belongs to a template; an alert has its own message");
}

/** What is wrong with a node: its health overrides, and the alerts of the overrides that are in force. */
export const NodeHealth = z.strictObject({
  node_id: NodeId,
  health_overrides: z.array(HealthOverride),
  alerts: z.array(z.strictObject({ ...HealthAlert.shape, in_alert_since: Timestamp, sources: z.array(z.string()) })),
  /** Whether an alert keeps new tenants off the node. Other facts may keep new tenants off too: see `unschedulable_reasons` of the node. */
  prevents_allocations: z.boolean(),
  /** Whether an alert keeps the node's allocation from being released without force. */
  prevents_release: z.boolean(),
});
export type NodeHealth = z.output<typeof NodeHealth>;
export const HealthOverrideRemove = z.strictObject({
  source: OverrideSource.describe("The source of the override, as get-node names it"),
  expected_revision: z
    .int()
    .min(1)
    .max(2_147_483_647)
    .describe("The revision of the override that the caller has seen; another one is refused")
    .optional(),
  reason: Reason,
});
