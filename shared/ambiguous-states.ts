import type { Rule } from "./failure-rule.ts";

/**
 * The failures of the class `state_ambiguity` (lifecycle 4.7) all need a person. In a failure of the class `state_ambiguity`, MAAS, the host and the
 * hub contradict each other about a machine, or nothing tells for certain what the machine is.
 */
export const STATE_AMBIGUITY = {
  retry: "never",
  endsAs: "failed_manual_intervention",
  compensate: false,
  // A rerun from the first stage lets every stage of the workflow look at the machine's present state. After a failure of the class
  // `state_ambiguity`, a resume at the failed stage would find the machine unchanged and fail again (lifecycle 4.9).
  nextVerb: "rerun",
  nextAction:
    "Look at the machine in MAAS. Where it is nobody's, bring it to New or Ready; where it is this host's, bring it back to what it was. Then rerun, or cancel.",
  codes: [
    "machine_vanished",
    "bound_machine_vanished",
    "conflicting_candidates",
    "unexpected_maas_status",
    "machine_owned_by_other",
    "machine_locked",
    "left_deployed",
    "unknown_maas_status",
    "node_state_conflict",
    "stopped_by_operator",
    "drain_incomplete",
    "residue_found",
    "tenant_had_root",
    "uninstall_accepted",
    "erase_unproven",
    "erase_fell_back",
    "erase_disproved",
    "disks_changed",
  ],
  exceptions: {
    drain_incomplete: {
      nextVerb: "resume",
      nextAction: "See to it that whoever is still logged in leaves, then resume; or force, which ends their sessions.",
    },
    residue_found: {
      nextVerb: "resume",
      nextAction:
        "Look on the host at each thing that the evidence names. Remove what a tenant left, then resume: the host is read again. Or rerun, which cleans the host again.",
    },
    tenant_had_root: {
      nextAction:
        "Cancel this soft reset, then release the allocation again: the hub reimages the node. If no MAAS can deploy the host, drain and remove the node, and install its host anew. A rerun fails again, unless soft_reset_after_root of the profile allows the soft reset.",
    },
    uninstall_accepted: {
      nextVerb: "resume",
      nextAction: "The agent removes itself already: resume to finish the remove.",
    },
    erase_unproven: { nextVerb: "resume", nextAction: "Erase the disks as the message says, then resume; or force." },
    erase_fell_back: {
      nextVerb: "resume",
      nextAction: "Erase the disks as the message says, then resume; or force.",
    },
    erase_disproved: {
      nextVerb: "resume",
      nextAction:
        "The erase did not reach the named disks. Cancel, and reimage the node with an erase of kind secure. Or erase or replace the disks, then resume; or force.",
    },
    disks_changed: {
      nextVerb: "resume",
      nextAction:
        "Find the disks that the message names. Bring them back and resume, so that their blocks are compared; or force if somebody removed them from the host.",
    },
    machine_locked: {
      nextVerb: "resume",
      nextAction: "Find out who locked the machine in MAAS and why; once it is unlocked, resume.",
    },
    machine_owned_by_other: {
      nextAction:
        "Somebody else holds the machine in MAAS. Find out who; once they have released it, rerun, or cancel.",
    },
    left_deployed: {
      nextAction:
        "A node that was removed has left the machine deployed. Release it: release-node with the node_id of the evidence. Once that has completed, rerun.",
    },
    node_state_conflict: {
      nextAction: "Find out what the node is and decide what it is to be; once that is so, rerun, or cancel.",
    },
    machine_vanished: {
      nextVerb: "restart_clean",
      nextAction:
        "Look in MAAS whether the machine was deleted or re-created. Restart clean to find or create it anew, or cancel.",
    },
    bound_machine_vanished: {
      nextAction:
        "The node's machine is not in MAAS any more. Where it was deleted, see to it that the host is powered off, cancel, and remove the node; where it comes back, rerun.",
    },
    conflicting_candidates: {
      nextVerb: "resume",
      nextAction:
        "Say in MAAS which machine is this host: give it the BMC address of the request, and remove or rename those that are not. Then resume.",
    },
    stopped_by_operator: {
      nextVerb: "resume",
      nextAction: "Resolve what it was stopped for, then resume.",
    },
  },
} as const satisfies Rule;
