import type { NodeStatus } from "../../shared/node-status.ts";

export const TRANSITION_OWNERS = [
  "admin_api",
  "onboarding",
  "operator",
  "heartbeat",
  "reconciler",
  "cleanup",
  "drain",
  "remove",
  "identity",
  "reimage",
] as const;
export type TransitionOwner = (typeof TRANSITION_OWNERS)[number];

/**
 * All allowed changes of a node's status (state model 3.2), each with its owners. The owner of a status change is the operator, or the part of Muster
 * that may make the change (state model 3.3). The owner `identity` is the part of Muster that checks whether two hosts use one identity (decision
 * I1). An operator may quarantine a node in service (decision N4), and may retire a node whose host never enrolled.
 */
export const NODE_TRANSITIONS = {
  bootstrap_issued: { enrolling: ["admin_api", "onboarding"], retired: ["operator"] },
  enrolling: { active: ["onboarding", "reimage"], quarantined: ["onboarding", "operator", "reimage"] },
  active: {
    offline: ["heartbeat", "reconciler"],
    quarantined: ["reconciler", "cleanup", "identity", "operator"],
    draining: ["admin_api"],
    enrolling: ["reimage"],
  },
  offline: {
    active: ["heartbeat", "reconciler"],
    quarantined: ["reconciler", "cleanup", "identity", "operator"],
    draining: ["admin_api"],
    enrolling: ["reimage"],
  },
  quarantined: {
    active: ["operator", "reconciler", "identity", "cleanup"],
    draining: ["admin_api"],
    enrolling: ["reimage"],
  },
  draining: { retired: ["drain"], offline: ["drain", "operator"] },
  retired: { active: ["operator"], removing: ["remove"] },
  removing: { retired: ["remove"], deleted: ["remove"] },
  deleted: {},
} as const satisfies Record<NodeStatus, Partial<Record<NodeStatus, readonly TransitionOwner[]>>>;

type Table = typeof NODE_TRANSITIONS;
type Items<L> = L extends readonly (infer O)[] ? O : never;
/** A node becomes `draining` or `removing` only together with the operation that owns this status (decision N3). */
type Operation<T> = T extends "draining" | "removing" ? { readonly operationId: string } : unknown;

/**
 * A change of a node's status that `NODE_TRANSITIONS` allows, with an owner that may make the change. Code that changes a node's status in a way that
 * `NODE_TRANSITIONS` does not allow does not compile.
 */
export type NodeTransition = {
  [F in NodeStatus]: {
    [T in keyof Table[F]]: { readonly from: F; readonly to: T; readonly owner: Items<Table[F][T]> } & Operation<T>;
  }[keyof Table[F]];
}[NodeStatus];

/**
 * Returns the allowed changes of a node's status as a Mermaid state diagram. A test compares the diagram from `transitionsDiagram` with the diagram
 * in docs/node-states.md.
 */
export function transitionsDiagram(): string {
  const edges = Object.entries(NODE_TRANSITIONS).flatMap(([from, targets]) =>
    Object.entries(targets).map(([to, owners]) => `  ${from} --> ${to}: ${owners.join(", ")}`),
  );
  return ["stateDiagram-v2", ...edges].join("\n");
}
