import type { HealthIssue } from "../../shared/repair.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import type { CaseChange } from "../db/queries/repair-cases.ts";

const MOST_SUMMARY = 1024;
const MOST_DETAILS = 8192;

/**
 * The hub redacts credentials in the texts of tenants and repair systems before it stores, shows or sends them, as in texts of external provisioning
 * systems.
 */
export function redactedChange<T extends CaseChange | HealthIssue>(change: T): T {
  const { summary, details, finding } = change as CaseChange;
  return {
    ...change,
    ...(summary === undefined ? {} : { summary: withoutCredentials(summary).slice(0, MOST_SUMMARY) }),
    ...(typeof details === "string" ? { details: withoutCredentials(details).slice(0, MOST_DETAILS) } : {}),
    ...(typeof finding === "string" ? { finding: withoutCredentials(finding) } : {}),
  };
}

/** Redacts credentials in all texts of a timeline entry's details, which are plain JSON. */
export function redactedDetails(details: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(details).map(([name, value]) => [name, redacted(value)]));
}

function redacted(value: unknown): unknown {
  if (typeof value === "string") return withoutCredentials(value);
  if (Array.isArray(value)) return value.map(redacted);
  return typeof value === "object" && value !== null ? redactedDetails(value as Record<string, unknown>) : value;
}
