import { type Classification, type HealthAlert, isOwnOverride, type OverrideMode } from "../../shared/health-report.ts";

/** The facts of a health override that decide what it does to its node. */
export interface OverrideFacts {
  readonly source: string;
  readonly mode: OverrideMode;
  readonly reason: string;
  readonly since: Date;
  /** The alerts that a person gave; null for an override that Muster set itself, which raises exactly one alert. */
  readonly alerts: readonly HealthAlert[] | null;
}

export interface AlertInForce extends HealthAlert {
  readonly since: Date;
  /** The overrides that raise the alert. */
  readonly sources: readonly string[];
}

/** The alert that an override without alerts stands for: it keeps new tenants off the node. */
const ownAlert = ({ source, reason }: OverrideFacts): HealthAlert => ({
  id: source,
  target: null,
  message: reason,
  tenant_message: null,
  classifications: ["PreventAllocations"],
});

/** The alerts that an override raises. */
export const alertsOf = (override: OverrideFacts): readonly HealthAlert[] => override.alerts ?? [ownAlert(override)];

/**
 * Returns the overrides that count: all of them, or, if one of them has the mode `replace`, that one alone and Muster's own overrides. An override of
 * the mode `replace` never sets aside an override that Muster has set because it does not know whose data is on the host. Only evidence about the
 * host, or a person who removes it, ends an override of Muster's own.
 */
export function overridesInForce<T extends OverrideFacts>(overrides: readonly T[]): T[] {
  const isReplaced = overrides.some(({ mode }) => mode === "replace");
  return overrides.filter(({ source, mode }) => !isReplaced || mode === "replace" || isOwnOverride(source));
}

const keyOf = ({ id, target }: HealthAlert): string => JSON.stringify([id, target]);

/**
 * Joins the alerts of all overrides that count. Several alerts with the same id and target become one: with all their classifications, all their
 * messages, and the earliest time. The order of the overrides changes nothing but the order of the messages.
 */
export function aggregateAlerts(overrides: readonly OverrideFacts[]): AlertInForce[] {
  const joined = new Map<string, AlertInForce>();
  for (const override of overridesInForce(overrides))
    for (const one of alertsOf(override)) {
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
export const overridesThat = <T extends OverrideFacts>(classification: Classification, overrides: readonly T[]): T[] =>
  overridesInForce(overrides).filter((one) =>
    alertsOf(one).some(({ classifications }) => classifications.includes(classification)),
  );
