import type { NodeStatus } from "../../shared/node-status.ts";
import type { Node } from "../db/schema/index.ts";

/**
 * The statuses of a node in which its host may enroll once more and get a new certificate. While a workflow holds the node, the hub refuses a new
 * enrollment.
 */
export const RE_ENROLLED: ReadonlySet<NodeStatus> = new Set(["active", "offline", "quarantined"]);

type Kind = Pick<Node, "onboardingMode" | "status" | "runsAgent">;

const isBeforeService = ({ status }: Pick<Kind, "status">): boolean =>
  status === "bootstrap_issued" || status === "enrolling";

/** True for a node whose host gets its first agent by a command that a person runs. */
export const getsBootstrapCommand = (node: Kind): boolean =>
  node.onboardingMode !== "maas" && node.runsAgent && isBeforeService(node);

/**
 * Says how the host of a node can enroll once more. The advice about a new enrollment names only commands that the hub accepts in the node's present
 * status.
 */
export function enrollAgain(node: Kind): string {
  const { status } = node;
  const by = (command: string): string => `a new command (${command}) and run it on the host`;
  if (RE_ENROLLED.has(status)) return `Get ${by("re-enroll-node")}.`;
  if (getsBootstrapCommand(node)) return `Get ${by("create-bootstrap-command")}.`;
  if (isBeforeService(node))
    return "Once nobody uses the host, begin its onboarding or reimage again with restart-clean, which deploys the host anew.";
  if (status === "draining") return `Cancel the operation that drains the node, then get ${by("re-enroll-node")}.`;
  if (status === "retired") return `Activate the node (activate-node), then get ${by("re-enroll-node")}.`;
  return "The node leaves the fleet, so its host needs no agent. Onboard the host again if Muster is to keep it.";
}
