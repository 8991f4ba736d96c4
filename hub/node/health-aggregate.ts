import { type Classification, type HealthAlert, isOwnOverride, type OverrideMode } from "../../shared/health-report.ts";

/** The facts of a health override that decide what it does to its node. */
export interface OverrideFacts {
  readonly source: string;
  readonly mode: OverrideMode;
  readonly reason: string;
  readonly since: Date;
  /** The alerts that a person gave; null for a health override that Muster set itself, which raises exactly one alert. */
  readonly alerts: readonly HealthAlert[] | null;
}

export interface AlertInForce extends HealthAlert {
  readonly since: Date;
  /** The overrides that raise the alert. */
  readonly sources: readonly string[];
}

/** The alert that a health override without alerts of its own raises, which keeps new tenants off the node. */
const ownAlert = ({ source, reason }: OverrideFacts): HealthAlert => ({
  id: source,
  target: null,
  message: reason,
  tenant_message: null,
  classifications: ["PreventAllocations"],
});

/** The alerts that an override raises. */
export const alertsOf = (override: OverrideFacts): readonly HealthAlert[] => override.alerts ?? [ownAlert(override)];

const isGuard = ({ classifications }: HealthAlert): boolean => classifications.includes("PreventInstanceDeletion");

/**
 * The alerts that an override raises beside the node's other overrides. An override of the mode `replace` sets the alerts of others aside, but never those
 * of an override that Muster has set because it does not know whose data is on the host, and never that an alert keeps the tenant's allocation from its
 * release (decision R1). Only evidence about the host, or a person who removes it, ends an override of Muster's own.
 */
function alertsBeside(override: OverrideFacts, isReplaced: boolean): readonly HealthAlert[] {
  const alerts = alertsOf(override);
  if (!isReplaced || override.mode === "replace" || isOwnOverride(override.source)) return alerts;
  return alerts.filter(isGuard).map((one) => ({ ...one, classifications: ["PreventInstanceDeletion"] }));
}

const isReplacedIn = (overrides: readonly OverrideFacts[]): boolean => overrides.some(({ mode }) => mode === "replace");

/** Returns the overrides that count: those with the mode `replace`, and those that keep alerts beside one (`alertsBeside`). */
export function overridesInForce<T extends OverrideFacts>(overrides: readonly T[]): T[] {
  const isReplaced = isReplacedIn(overrides);
  return overrides.filter((one) => !isReplaced || one.mode === "replace" || alertsBeside(one, true).length > 0);
}

const keyOf = ({ id, target }: HealthAlert): string => JSON.stringify([id, target]);

/**
 * Joins the alerts of all health overrides that are in force. Several alerts with the same id and target become one: with all their classifications,
 * all their messages, and the earliest time. The order of the health overrides affects only the order of the messages in a joined alert.
 */
export function aggregateAlerts(overrides: readonly OverrideFacts[]): AlertInForce[] {
  const joined = new Map<string, AlertInForce>();
  const isReplaced = isReplacedIn(overrides);
  for (const override of overridesInForce(overrides))
    for (const one of alertsBeside(override, isReplaced)) {
      const known = joined.get(keyOf(one));
      joined.set(
        keyOf(one),
        known === undefined
          ? { ...one, since: override.since, sources: [override.source] }
          : {
              ...known,
              message: lines(known.message, one.message) ?? "",
              tenant_message: lines(known.tenant_message, one.tenant_message),
              classifications: [...new Set([...known.classifications, ...one.classifications])],
              since: new Date(Math.min(known.since.getTime(), override.since.getTime())),
              sources: [...new Set([...known.sources, override.source])],
            },
      );
    }
  return [...joined.values()];
}

const lines = (one: string | null, other: string | null): string | null =>
  one === null || other === null || one === other ? (one ?? other) : `${one}\n${other}`;

/** Returns the overrides that count and have an alert with the classification. */
export function overridesThat<T extends OverrideFacts>(classification: Classification, overrides: readonly T[]): T[] {
  const isReplaced = isReplacedIn(overrides);
  return overridesInForce(overrides).filter((one) =>
    alertsBeside(one, isReplaced).some(({ classifications }) => classifications.includes(classification)),
  );
}
