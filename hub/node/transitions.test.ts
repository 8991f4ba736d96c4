import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { NODE_STATUSES, type NodeStatus } from "../../shared/node-status.ts";
import { NODE_TRANSITIONS, type NodeTransition, transitionsDiagram } from "./transitions.ts";

/**
 * For each pair of node statuses, the owners that may make the change from the first status to the second; The text `-` means that no owner may make
 * the change. If a pair of statuses is missing in `EXPECTED`, the test does not compile (state model 3.2, 3.3, decision N2).
 */
const EXPECTED: Record<NodeStatus, Record<NodeStatus, string>> = {
  bootstrap_issued: row({ enrolling: "admin_api onboarding", retired: "operator" }),
  enrolling: row({ active: "onboarding reimage", quarantined: "onboarding operator reimage" }),
  active: row({
    offline: "heartbeat reconciler",
    quarantined: "reconciler cleanup identity operator",
    draining: "admin_api",
    enrolling: "reimage",
  }),
  offline: row({
    active: "heartbeat reconciler",
    quarantined: "reconciler cleanup identity operator",
    draining: "admin_api",
    enrolling: "reimage",
  }),
  quarantined: row({ active: "operator reconciler identity cleanup", draining: "admin_api", enrolling: "reimage" }),
  draining: row({ retired: "drain", offline: "drain operator" }),
  retired: row({ active: "operator", removing: "remove" }),
  removing: row({ retired: "remove", deleted: "remove" }),
  deleted: row({}),
};

function row(allowed: Partial<Record<NodeStatus, string>>): Record<NodeStatus, string> {
  return {
    bootstrap_issued: "-",
    enrolling: "-",
    active: "-",
    offline: "-",
    quarantined: "-",
    draining: "-",
    retired: "-",
    removing: "-",
    deleted: "-",
    ...allowed,
  };
}

const ownersOf = (from: NodeStatus, to: NodeStatus): string => {
  const targets: Partial<Record<NodeStatus, readonly string[]>> = NODE_TRANSITIONS[from];
  return targets[to]?.join(" ") ?? "-";
};

describe("the table of node states", () => {
  it.each(NODE_STATUSES.flatMap((from) => NODE_STATUSES.map((to) => [from, to] as const)))("%s -> %s", (from, to) => {
    expect(ownersOf(from, to)).toBe(EXPECTED[from][to]);
  });

  it("leads out of every state except deleted", () => {
    for (const status of NODE_STATUSES)
      expect(Object.keys(NODE_TRANSITIONS[status]).length > 0).toBe(status !== "deleted");
  });

  it("does not compile a forbidden transition, a wrong owner, or draining without its operation", () => {
    const moves: NodeTransition[] = [
      { from: "enrolling", to: "active", owner: "onboarding" },
      { from: "active", to: "draining", owner: "admin_api", operationId: "op" },
      // @ts-expect-error no edge leads from deleted
      { from: "deleted", to: "active", owner: "operator" },
      // @ts-expect-error the heartbeat may not make an enrolling node active
      { from: "enrolling", to: "active", owner: "heartbeat" },
      // @ts-expect-error draining needs an owning operation (decision N3)
      { from: "active", to: "draining", owner: "admin_api" },
    ];
    expect(moves).toHaveLength(5);
  });

  it("equals the diagram in docs/node-states.md", () => {
    expect(readFileSync(new URL("../../docs/node-states.md", import.meta.url), "utf8")).toContain(transitionsDiagram());
  });
});
