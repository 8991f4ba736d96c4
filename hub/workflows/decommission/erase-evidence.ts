import { type Failure, failure } from "../../../shared/failures.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { MaasEvent } from "../../maas/port.ts";
import { type JudgedMachine, machineEvidence } from "../machine/verdict-table.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import type { EraseSigns } from "./erase-signs.ts";
import { type ErasedDisk, nameDisks } from "./erased-disks.ts";

type Asked = Pick<DecommissionContext, "input" | "state" | "node" | "workflowId">;

/**
 * The hub searches the newest `ERASE_EVENTS` events of a machine for the end of an erase. One boot of a machine writes up to some hundred DEBUG
 * events.
 */
export const ERASE_EVENTS = 1000;

/** The comment in a decommission's release call shows in MAAS's events which decommission asked for the erase. */
export const releaseComment = (workflowId: WorkflowId): string => `muster decommission ${workflowId}`;

const MEANING = {
  "User erasing disk": "erase_asked",
  "User releasing node": "release_asked",
  "Disks erased": "disks_erased",
  "Release scripts executed successfully.": "scripts_ended",
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

/**
 * The end of a release that a decommission asked for: an erase (`disks`) or release scripts (`scripts`). Release scripts may or may not have included
 * the script that erases disks.
 */
export type EraseEnd = "disks" | "scripts";
/**
 * The facts about a machine's release that the machine's events show, from the oldest event up to one event. The field `by` names who asked for the
 * unfinished release, and `deploy` names who asked for the last deploy.
 */
interface Story {
  readonly ended: EraseEnd | null;
  readonly by: "nobody" | "operation" | "other";
  readonly asked: EraseEnd;
  readonly deploy: "operation" | "other";
}
const BEFORE: Story = { ended: null, by: "nobody", asked: "scripts", deploy: "other" };

function after(story: Story, { type, description }: Told, of: Erase): Story {
  const meaning = MEANINGS.get(type);
  switch (meaning) {
    case "erase_asked":
    case "release_asked": {
      // After each erase MAAS itself releases the machine, and the event of that release has no description.
      if (description === "")
        return of.end === "release" && meaning === "release_asked" ? endOf(story, story.asked) : story;
      const by = description.endsWith(` - ${releaseComment(of.workflowId)}`) ? "operation" : "other";
      return { ...story, by, asked: meaning === "erase_asked" ? "disks" : "scripts" };
    }
    case "disks_erased":
      return endOf(story, "disks");
    case "scripts_ended":
      return endOf(story, "scripts");
    case "failed":
      return { ...story, ended: story.by === "nobody" ? story.ended : null, by: "nobody" };
    case "released":
      return { ...story, by: "nobody", deploy: "other" };
    case "deploy_asked":
      return { ...story, deploy: description.endsWith(` - muster reimage ${of.workflowId}`) ? "operation" : "other" };
    case "deploy_began":
      return { ...story, ended: story.deploy === "operation" ? story.ended : null };
    case "deployed":
      return { ...story, ended: null };
    case undefined:
      return story;
  }
}

/** The end of the release scripts in a machine's events never replaces the end of a disk erase, because the erase is stronger evidence. */
const endOf = (story: Story, what: EraseEnd): Story => ({
  ...story,
  ended: story.by === "operation" && story.ended !== "disks" ? what : story.ended,
  by: "nobody",
});

interface Erase {
  readonly workflowId: WorkflowId;
  /** The sign by which the region's version of MAAS shows the end of an erase. */
  readonly end: EraseSigns["end"];
}
type Told = Pick<MaasEvent, "id" | "type" | "description">;

/**
 * The end, in MAAS's events, of an erase that the decommission asked for; null if the events show no end, or a later deploy. MAAS's event for the
 * status Disk erasing shows only that an erase began. An erase that somebody else requested counts only with the decommission's comment, because
 * MAAS's events do not show the kind of erase. If the decommission's own deploy fails after an erase, the erase still counts, because this deploy
 * wrote nothing of a tenant to the disks.
 */
export const reportedEnd = (events: readonly Told[], of: Erase): EraseEnd | null =>
  events.toSorted((a, b) => a.id - b.id).reduce((story, event) => after(story, event, of), BEFORE).ended;

/**
 * True if the decommission asks for an erase, and no person has decided to continue without evidence of the erase. An operator's `force` that only
 * ended the wait for an absent agent is no decision to continue without evidence of an erase.
 */
export const needsEvidence = ({ input, state, node }: Asked): boolean =>
  input.erase !== "none" && state.erase_waived !== node.generation;

function adviceOf({ input, workflowId }: Asked): string {
  const how = input.erase === "none" ? "" : ` and ${FIELD[input.erase]}=true`;
  return [
    "If the region's setting enable_disk_erasing_on_release is on, turn it off first: with it, the region's settings may decide the kind of the erase.",
    "If the machine is New, commission it.",
    `Allocate the machine in MAAS and release it with erase=true${how} and the comment "${releaseComment(workflowId)}", then resume.`,
    "Force only if the disks need no erase: the operation continues, and the health override disk-erase keeps new work off the machine's node.",
    "The override ends if an operation erases the disks with evidence, or if a person removes it (remove-health-override).",
  ].join(" ");
}

const FIELD = { quick: "quick_erase", secure: "secure_erase" } as const;

const nameOf = ({ node }: Asked, { hostname, systemId, statusName }: JudgedMachine): string =>
  `Machine ${hostname} (${systemId}) of node ${node.hostname} is '${statusName}' in MAAS`;

const LACKS = {
  no_end: "MAAS's events do not show that the erase of this operation ended well",
  no_words:
    "MAAS's events show only that release scripts ended well, and MAAS has no output of the script that erases disks",
  no_answer: "MAAS refuses to tell how its release script erased the disks",
} as const;
export type EraseLack = keyof typeof LACKS;

/** The failure of a release that made the machine free without evidence that the disk erase ended well. */
export function eraseUnproven(asked: Asked, machine: JudgedMachine, lack: EraseLack): Failure {
  const { erase } = asked.input;
  const message = `${nameOf(asked, machine)}, but no evidence shows its erase (${erase}): ${LACKS[lack]}. ${adviceOf(asked)}`;
  return failure("state_ambiguity", "erase_unproven", message, { ...machineEvidence(machine), erase, lack });
}

/** The failure of a release in which MAAS erased disks by a weaker method than the decommission asked for. */
export function eraseFellBack(asked: Asked, machine: JudgedMachine, weaker: readonly ErasedDisk[]): Failure {
  const { erase } = asked.input;
  const message = `${nameOf(asked, machine)}, but MAAS's release script did not erase all disks as asked (${erase}): ${nameDisks(weaker)}. ${adviceOf(asked)}`;
  const disks = weaker.slice(0, 64).map((disk) => nameDisks([disk]));
  return failure("state_ambiguity", "erase_fell_back", message, { ...machineEvidence(machine), erase, disks });
}
