import { type Failure, failure } from "../../../shared/failures.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { MaasEvent } from "../../maas/port.ts";
import { type JudgedMachine, machineEvidence } from "../machine/verdict-table.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import { type ErasedDisk, nameDisks } from "./erased-disks.ts";

type Asked = Pick<DecommissionContext, "input" | "state" | "node" | "workflowId">;

/** To find the end of an erase, the hub reads this many of a machine's newest events. One boot of a machine writes up to some hundred DEBUG events. */
export const ERASE_EVENTS = 1000;

/** The comment of the operation's release calls, by which MAAS's events show which erase the operation asked for. */
export const releaseComment = (workflowId: WorkflowId): string => `muster decommission ${workflowId}`;

/** The meaning of the types of MAAS's events for an erase. */
const MEANING = {
  "User erasing disk": "release_asked",
  "User releasing node": "release_asked",
  "Disks erased": "erase_ended",
  "Release scripts executed successfully.": "erase_ended",
  "Aborted disk erasing": "failed",
  "Marking node failed": "failed",
  Released: "released",
  "User starting deployment": "deploy_asked",
  Deploying: "deploy_began",
  "Image Deployed": "deploy_began",
  Deployed: "deployed",
} as const;
type Meaning = (typeof MEANING)[keyof typeof MEANING];
const MEANINGS: ReadonlyMap<string, Meaning> = new Map(Object.entries(MEANING));

/** What a machine's events up to one event say. `by` names who asked for the release that has not ended, and `deploy` who asked for the last deploy. */
interface Story {
  readonly erased: boolean;
  readonly by: "nobody" | "operation" | "other";
  readonly deploy: "operation" | "other";
}
const BEFORE: Story = { erased: false, by: "nobody", deploy: "other" };

function after(story: Story, { type, description }: Told, workflowId: WorkflowId): Story {
  switch (MEANINGS.get(type)) {
    case "release_asked":
      // MAAS itself ends each erase by a release, whose event has no description.
      if (description === "") return story;
      return { ...story, by: description.endsWith(` - ${releaseComment(workflowId)}`) ? "operation" : "other" };
    case "erase_ended":
      return { ...story, erased: story.erased || story.by === "operation", by: "nobody" };
    case "failed":
      return { ...story, erased: story.erased && story.by === "nobody", by: "nobody" };
    case "released":
      return { ...story, by: "nobody", deploy: "other" };
    case "deploy_asked":
      return { ...story, deploy: description.endsWith(` - muster reimage ${workflowId}`) ? "operation" : "other" };
    case "deploy_began":
      return { ...story, erased: story.erased && story.deploy === "operation" };
    case "deployed":
      return { ...story, erased: false };
    default:
      return story;
  }
}

type Told = Pick<MaasEvent, "id" | "type" | "description">;

/**
 * True if MAAS's events show that an erase that the operation asked for came to its end, and that nothing was deployed since. The status Disk erasing
 * only shows that an erase began. An erase that somebody else asked for counts only with the operation's own comment, because MAAS's events do not
 * show the kind of an erase. A failed deploy of the operation itself wrote nothing of a tenant, so it leaves the erase in force.
 */
export const reportsErase = (events: readonly Told[], workflowId: WorkflowId): boolean =>
  events.toSorted((a, b) => a.id - b.id).reduce((story, event) => after(story, event, workflowId), BEFORE).erased;

/**
 * True if the operation asks for an erase, and no person has decided to continue without evidence of the erase. A `force` that replaced an agent says
 * nothing about an erase.
 */
export const needsEvidence = ({ input, state, node }: Asked): boolean =>
  input.erase !== "none" && state.erase_waived !== node.generation;

/** What a person does to erase the disks of a free machine so that the erase counts for the operation. */
function adviceOf({ input, workflowId }: Asked): string {
  const how = input.erase === "none" ? "" : ` and ${FIELD[input.erase]}=true`;
  return `Allocate the machine in MAAS and release it with erase=true${how} and the comment "${releaseComment(workflowId)}", then resume. Force only if the disks need no erase.`;
}

const FIELD = { quick: "quick_erase", secure: "secure_erase" } as const;

const nameOf = ({ node }: Asked, { hostname, systemId, statusName }: JudgedMachine): string =>
  `Machine ${hostname} (${systemId}) of node ${node.hostname} is '${statusName}' in MAAS`;

/** The failure of a release whose machine is free without evidence that the erase ended well. */
export function eraseUnproven(asked: Asked, machine: JudgedMachine): Failure {
  const { erase } = asked.input;
  const message = `${nameOf(asked, machine)}, and MAAS's events do not show that the erase (${erase}) of this operation ended well. ${adviceOf(asked)}`;
  return failure("state_ambiguity", "erase_unproven", message, { ...machineEvidence(machine), erase });
}

/** The failure of a release whose machine is free after MAAS erased disks by a weaker method than the operation asked for. */
export function eraseFellBack(asked: Asked, machine: JudgedMachine, weaker: readonly ErasedDisk[]): Failure {
  const { erase } = asked.input;
  const message = `${nameOf(asked, machine)}, but MAAS's release script did not erase all disks as asked (${erase}): ${nameDisks(weaker)}. ${adviceOf(asked)}`;
  const disks = weaker.slice(0, 64).map((disk) => nameDisks([disk]));
  return failure("state_ambiguity", "erase_fell_back", message, { ...machineEvidence(machine), erase, disks });
}
