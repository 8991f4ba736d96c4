import { type Failure, failure } from "../../../shared/failures.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { MaasEvent } from "../../maas/port.ts";
import { type JudgedMachine, machineEvidence } from "../machine/verdict-table.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import type { EraseSigns } from "./erase-signs.ts";
import { type ErasedDisk, nameDisks } from "./erased-disks.ts";

type Asked = Pick<DecommissionContext, "input" | "state" | "node" | "workflowId">;

/** To find the end of an erase, the hub reads this many of a machine's newest events. One boot of a machine writes up to some hundred DEBUG events. */
export const ERASE_EVENTS = 1000;

/** The comment of the operation's release calls, by which MAAS's events show which erase the operation asked for. */
export const releaseComment = (workflowId: WorkflowId): string => `muster decommission ${workflowId}`;

/** The meaning of the types of MAAS's events for an erase. */
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
 * What ended well in a release that the operation asked for: `disks` is an erase, and `scripts` are release scripts of which MAAS's events do not show
 * whether the script that erases disks was among them.
 */
export type EraseEnd = "disks" | "scripts";
/**
 * What a machine's events up to one event say. `by` names who asked for the release that has not ended, `asked` names what this release runs, and
 * `deploy` names who asked for the last deploy.
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
      // MAAS itself ends each erase by a release, whose event has no description.
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

/** The story after the end of a release's scripts. An erase that ended before stays the stronger evidence. */
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
 * What MAAS's events show of the end of an erase that the operation asked for, if nothing was deployed since; null if they show no end. The status Disk
 * erasing only shows that an erase began. An erase that somebody else asked for counts only with the operation's own comment, because MAAS's events do
 * not show the kind of an erase. A failed deploy of the operation itself wrote nothing of a tenant, so it leaves the erase in force.
 */
export const reportedEnd = (events: readonly Told[], of: Erase): EraseEnd | null =>
  events.toSorted((a, b) => a.id - b.id).reduce((story, event) => after(story, event, of), BEFORE).ended;

/**
 * True if the operation asks for an erase, and no person has decided to continue without evidence of the erase. A `force` that replaced an agent says
 * nothing about an erase.
 */
export const needsEvidence = ({ input, state, node }: Asked): boolean =>
  input.erase !== "none" && state.erase_waived !== node.generation;

/** What a person does to erase the disks of a free machine so that the erase counts for the operation, and what a `force` means. */
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

/** The reasons for which nothing proves an erase. */
const LACKS = {
  no_end: "MAAS's events do not show that the erase of this operation ended well",
  no_words:
    "MAAS's events show only that release scripts ended well, and MAAS has no output of the script that erases disks",
  no_answer: "MAAS refuses to tell how its release script erased the disks",
} as const;
export type EraseLack = keyof typeof LACKS;

/** The failure of a release whose machine is free without evidence that the erase ended well. */
export function eraseUnproven(asked: Asked, machine: JudgedMachine, lack: EraseLack): Failure {
  const { erase } = asked.input;
  const message = `${nameOf(asked, machine)}, but no evidence shows its erase (${erase}): ${LACKS[lack]}. ${adviceOf(asked)}`;
  return failure("state_ambiguity", "erase_unproven", message, { ...machineEvidence(machine), erase, lack });
}

/** The failure of a release whose machine is free after MAAS erased disks by a weaker method than the operation asked for. */
export function eraseFellBack(asked: Asked, machine: JudgedMachine, weaker: readonly ErasedDisk[]): Failure {
  const { erase } = asked.input;
  const message = `${nameOf(asked, machine)}, but MAAS's release script did not erase all disks as asked (${erase}): ${nameDisks(weaker)}. ${adviceOf(asked)}`;
  const disks = weaker.slice(0, 64).map((disk) => nameDisks([disk]));
  return failure("state_ambiguity", "erase_fell_back", message, { ...machineEvidence(machine), erase, disks });
}
