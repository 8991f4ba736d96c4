import type { z } from "zod";
import type { StatusHistory } from "../../../shared/api/instances.ts";
import type { NodeDetail } from "../../../shared/api/nodes.ts";
import type { SanitizationSummary } from "../../../shared/api/sanitization.ts";
import type { HubApi } from "../../support/hub-api.ts";

/** Reads the nodes that are in the fleet: those that are neither deleted, retired, nor still on their way in. */
export async function readFleet(hub: HubApi): Promise<NodeDetail[]> {
  const inFleet = (await hub.nodes()).filter(({ status }) => !OUTSIDE.has(status));
  const nodes: NodeDetail[] = [];
  for (const { id } of inFleet) nodes.push(await hub.node(id));
  return nodes;
}
const OUTSIDE: ReadonlySet<NodeDetail["status"]> = new Set(["bootstrap_issued", "enrolling", "retired", "deleted"]);

/** What is wrong with a node: the conditions that it lacks, and the alerts of its health overrides. */
export function alertsOf(node: NodeDetail) {
  const lacking = node.readiness.lacking.map(({ type, message }) => ({
    id: type,
    target: "condition",
    message,
    classifications: ["PreventAllocations"],
  }));
  const set = node.health_overrides.filter(({ in_force: counts }) => counts);
  const alerts = set.flatMap(({ source, reason, alerts: given }) =>
    given === null
      ? [{ id: source, target: "override", message: reason, classifications: ["PreventAllocations"] }]
      : given.map(({ id, target, message, classifications }) => ({ id, target, message, classifications })),
  );
  return [...lacking, ...alerts];
}

export const isHealthy = (node: NodeDetail): boolean => node.status === "active" && alertsOf(node).length === 0;

type Entry = Pick<z.output<typeof StatusHistory>["entries"][number], "status">;
type Cleaning = Pick<SanitizationSummary, "sequence" | "verdict">;

/**
 * True if each use of a machine by a tenant was followed by a cleaning before the machine was Ready again. A use that goes on needs no cleaning yet.
 * The suite asks only for the history; this provider also asks that the newest record of a cleaning does not say that the host is not clean.
 */
export function wasCleaned(entries: readonly Entry[], cleanings: readonly Cleaning[]): boolean {
  let dirty = false;
  for (const { status } of entries) {
    if (status === "InUse") dirty = true;
    if (status === "Reset") dirty = false;
    if (status === "Ready" && dirty) return false;
  }
  const newest = cleanings.toSorted((a, b) => b.sequence - a.sequence)[0];
  return newest?.verdict !== "not_clean";
}
