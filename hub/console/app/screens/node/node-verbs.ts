import type { Node } from "./node-questions.ts";

type Status = Node["status"];
type Standing = Pick<
  Node,
  "status" | "cordon_reason" | "cordon_owner" | "allocation" | "onboarding_mode" | "conditions"
>;

export type NodeVerb =
  | "cordon"
  | "uncordon"
  | "drain"
  | "quarantine"
  | "lift_quarantine"
  | "activate"
  | "storage_cleanup"
  | "soft_reset"
  | "reimage"
  | "full_decommission"
  | "release"
  | "remove"
  | "baseline"
  | "re_enroll"
  | "bootstrap_command"
  | "revoke_certificates"
  | "clear_reports";

const SERVES: readonly Status[] = ["active", "offline", "quarantined"];
const LIVES: readonly Status[] = ["active", "offline", "quarantined", "enrolling", "retired"];

/** For each verb of a node: the node statuses in which the verb applies, and the message for the other statuses. */
const WHERE: Readonly<Record<NodeVerb, { readonly on: readonly Status[]; readonly needs: string }>> = {
  cordon: { on: LIVES, needs: "Only a node that lives can be cordoned." },
  uncordon: { on: LIVES, needs: "Only a node that lives can be uncordoned." },
  drain: { on: SERVES, needs: "Only a node in service can be drained." },
  quarantine: { on: ["active", "offline"], needs: "Only an active or offline node can be quarantined." },
  lift_quarantine: { on: ["quarantined"], needs: "The node is not quarantined." },
  activate: { on: ["retired"], needs: "Only a retired node can be activated. A drain retires a node." },
  storage_cleanup: { on: SERVES, needs: "Only a node in service can be cleaned." },
  soft_reset: { on: SERVES, needs: "Only a node in service can be reset for the next tenant." },
  reimage: { on: [...SERVES, "retired"], needs: "Only a node in service or a retired node can be reimaged." },
  full_decommission: {
    on: [...SERVES, "draining", "retired"],
    needs: "Only a node in service, a draining or a retired node can leave the fleet in one operation.",
  },
  release: {
    on: ["retired", "deleted"],
    needs: "Only the machine of a retired or deleted node can be released. Drain the node first.",
  },
  remove: { on: ["retired", "bootstrap_issued"], needs: "Only a retired node can be removed. Drain the node first." },
  baseline: { on: SERVES, needs: "Only a node in service has an agent that can take a baseline." },
  re_enroll: { on: SERVES, needs: "Only a node in service has an identity to replace." },
  bootstrap_command: {
    on: ["bootstrap_issued", "enrolling"],
    needs: "Only a node that is not in service yet has a bootstrap command.",
  },
  revoke_certificates: { on: [...LIVES, "draining", "removing"], needs: "The node has no valid certificate." },
  clear_reports: { on: [...LIVES, "draining"], needs: "Only a node that lives has reports." },
};

/** The verbs that take a host out of MAAS or reinstall it apply only to a node with a machine in MAAS. */
const NEEDS_MAAS: ReadonlySet<NodeVerb> = new Set(["reimage", "full_decommission", "release"]);
/** The verbs that would take the node away from its tenant. */
const WITHOUT_TENANT: ReadonlySet<NodeVerb> = new Set(["storage_cleanup", "full_decommission", "baseline"]);

/** If two hosts have used one node's identity, the hub accepts no agent of the node until the node enrolls again. */
const isBlocked = ({ conditions }: Pick<Node, "conditions">): boolean =>
  conditions.some(({ type, status }) => type === "agent.identity" && status === "False");

/** Returns why a verb cannot apply to the node now; null if a person can use it. The hub decides about each request again. */
export function whyNot(verb: NodeVerb, node: Standing): string | null {
  const { on, needs } = WHERE[verb];
  if (!on.includes(node.status)) return `${needs} The node is ${node.status.replaceAll("_", " ")}.`;
  if (NEEDS_MAAS.has(verb) && (node.onboarding_mode === "manual" || node.onboarding_mode === "external"))
    return "The node is of manual mode, so Muster does not manage its machine in MAAS.";
  if (WITHOUT_TENANT.has(verb) && node.allocation !== null)
    return `The node is allocated to ${node.allocation.tenant}. End the allocation first.`;
  if (verb === "cordon" && node.cordon_reason !== null) return `The node is cordoned already: ${node.cordon_reason}`;
  if (verb === "uncordon") return whyNotUncordoned(node);
  if (verb === "re_enroll" && !isBlocked(node) && node.status !== "offline")
    return "The agent of the node is connected with a valid identity. Re-enroll a node that is offline, or whose identity two hosts used.";
  return null;
}

function whyNotUncordoned({ cordon_reason: reason, cordon_owner: owner }: Standing): string | null {
  if (reason === null) return "The node is not cordoned.";
  if (owner?.startsWith("operator:")) return null;
  return `The cordon belongs to ${owner ?? "the hub"} (${reason}) and ends with it.`;
}
