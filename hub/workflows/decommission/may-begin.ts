import type { NodeStatus } from "../../../shared/node-status.ts";
import type { DecommissionMode } from "../../../shared/workflow-status.ts";

const CLEANED_IN_SERVICE: Readonly<Record<NodeStatus, true | string>> = {
  bootstrap_issued: "Its host has not enrolled, so nothing is installed there.",
  enrolling: "It is not in service yet: wait until it is active.",
  active: true,
  offline: true,
  quarantined: true,
  draining: "It is being drained: wait until it is retired, then activate it, or cancel the drain.",
  retired: "It is out of service: activate it first.",
  removing: "It is being removed.",
  deleted: "A deleted node is never used again.",
};

/**
 * `MAY_BEGIN` says in which statuses of a node each mode of a decommission may begin. If a node's status does not allow a mode of decommission, the
 * text in `MAY_BEGIN` says why, and what the operator does next. A new operation may take over a `draining` or `removing` node if no other operation
 * holds the node. A drain may also take over an `enrolling` node without an onboarding (`leaveEnrolling`). A `remove` is complete at once if the
 * node's host never enrolled.
 */
export const MAY_BEGIN: Readonly<Record<DecommissionMode, Readonly<Record<NodeStatus, true | string>>>> = {
  drain: {
    bootstrap_issued: "Its host has not enrolled, so there is nothing to drain: remove it.",
    enrolling: true,
    active: true,
    offline: true,
    quarantined: true,
    draining: true,
    retired: "It is drained already: remove it, or activate it.",
    removing: "It is being removed.",
    deleted: "A deleted node is never used again.",
  },
  remove: {
    bootstrap_issued: true,
    enrolling: "Only a retired node is removed: cancel its onboarding, and drain the node that it leaves.",
    active: "Only a retired node is removed: drain it first.",
    offline: "Only a retired node is removed: drain it first.",
    quarantined: "Only a retired node is removed: drain it first.",
    draining: "Only a retired node is removed: wait until it is drained.",
    retired: true,
    removing: true,
    deleted: "It is removed already.",
  },
  release: {
    bootstrap_issued: "It is no machine in MAAS.",
    enrolling:
      "Only the machine of a retired node is released: cancel its onboarding, and drain the node that it leaves.",
    active: "Only the machine of a retired node is released: drain it first.",
    offline: "Only the machine of a retired node is released: drain it first.",
    quarantined: "Only the machine of a retired node is released: drain it first.",
    draining: "Only the machine of a retired node is released: wait until it is drained.",
    retired: true,
    removing: "It is being removed.",
    // An operator may release the machine of a deleted node, so that the host can be onboarded again.
    deleted: true,
  },
  soft_reset: CLEANED_IN_SERVICE,
  reimage: CLEANED_IN_SERVICE,
  storage_cleanup: CLEANED_IN_SERVICE,
  reinstall: CLEANED_IN_SERVICE,
  full_decommission: {
    bootstrap_issued: "Its host has not enrolled, and it is no machine in MAAS: remove it.",
    enrolling: "It is not in service yet: cancel its onboarding, and decommission the node that it leaves.",
    active: true,
    offline: true,
    quarantined: true,
    draining: true,
    retired: true,
    removing: "It is being removed.",
    deleted: "It is removed already: release its machine, if it left one deployed.",
  },
};
