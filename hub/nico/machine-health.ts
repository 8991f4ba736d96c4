import type { NodeRow } from "../db/queries/node-reads.ts";
import { aggregateAlerts } from "../node/health-aggregate.ts";
import { readinessOf, toldLacking } from "../node/readiness-verdict.ts";
import { obstaclesOf } from "../node/schedulable.ts";
import { readinessFactsOf, schedulingFactsOf } from "../node/scheduling-facts.ts";

export interface MachineAlert {
  readonly id: string;
  readonly target: string | null;
  readonly inAlertSince: string | null;
  readonly message: string;
  readonly tenantMessage: string | null;
  readonly classifications: readonly string[];
}

export interface MachineHealth {
  readonly source: "muster";
  /** The time of the last contact of the node's agent; null if the agent has never made contact. */
  readonly observedAt: string | null;
  readonly successes: readonly { readonly id: string; readonly target: string | null }[];
  readonly alerts: readonly MachineAlert[];
}

/**
 * The obstacles to new work that get no alert of their own in NICo's health report, because the machine's tenant, cordon or health overrides already
 * show them.
 */
const NO_ALERT = new Set(["allocated", "cordoned", "health_override"]);

/**
 * Joins the alerts of the node's health overrides, the conditions that keep it from being ready, and the other obstacles to new work, in the form of
 * NICo's aggregate. In NICo's health report, a condition of the node's present generation with the status True is a success, unless the condition
 * keeps the node from being ready.
 */
export function machineHealthOf(row: NodeRow): MachineHealth {
  const { node, conditions, overrides } = row;
  const { lacking } = readinessOf(readinessFactsOf(row), conditions);
  const facts = schedulingFactsOf(row, false);
  const lacks = new Set(lacking.map(({ type }) => type));
  return {
    source: "muster",
    observedAt: node.lastAgentContactAt?.toISOString() ?? null,
    successes: conditions
      .filter(({ type, status, generation }) => status === "True" && generation === node.generation && !lacks.has(type))
      .map(({ type }) => ({ id: type, target: null })),
    alerts: [
      ...aggregateAlerts(overrides).map(({ id, target, since, message, tenant_message, classifications }) => ({
        id,
        target,
        inAlertSince: since.toISOString(),
        message,
        tenantMessage: tenant_message,
        classifications,
      })),
      ...lacking.map((one) => ({
        id: one.type,
        target: null,
        inAlertSince: one.since.toISOString(),
        message: `${toldLacking(one)}. ${one.nextAction}`,
        tenantMessage: null,
        classifications: ["PreventAllocations"],
      })),
      ...obstaclesOf(facts, conditions)
        .filter(({ kind }) => !NO_ALERT.has(kind) && kind !== node.status && !kind.startsWith("without_"))
        .map(({ kind, text }) => ({
          id: kind,
          target: null,
          inAlertSince: null,
          message: text,
          tenantMessage: null,
          classifications: ["PreventAllocations"],
        })),
    ],
  };
}

/** True if an alert keeps new tenants off the node. */
export const preventsAllocations = ({ alerts }: MachineHealth): boolean =>
  alerts.some(({ classifications }) => classifications.includes("PreventAllocations"));
