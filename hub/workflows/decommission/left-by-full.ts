import type { Evidence } from "../../../shared/failures.ts";
import type { Leftover } from "../../../shared/leftover.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import { readObservedMachine } from "../../db/queries/maas-machines.ts";
import type { ChosenSecret } from "../../db/schema/index.ts";
import type { Db } from "../../db/tx.ts";
import { nameOf } from "./chosen-secrets.ts";
import type { DecommissionContext } from "./decommission-context.ts";

/** One thing that a full decommission leaves behind, with the operator's next action; an empty `todo` means that no action is needed. */
export interface LeftThing {
  readonly what: string;
  readonly todo: string;
}

export interface SeenMachine {
  readonly status: number;
  readonly statusName: string;
}

/** A requested erase without evidence, and the person who decided to continue without the evidence; null if nobody decided so. */
interface UnprovenErase {
  readonly kind: string;
  readonly waivedBy: string | null;
}

export interface FullFacts {
  readonly hostname: string;
  readonly node: NodeStatus;
  readonly released: boolean;
  readonly systemId: string;
  /** The node's machine in MAAS; null if MAAS does not have the machine, and "unknown" if nobody has looked in MAAS yet. */
  readonly machine: SeenMachine | null | "unknown";
  readonly removeMaasRecord: boolean;
  /** The requested disk erase if no evidence shows its end; null if the decommission asked for no erase, or if there is such evidence. */
  readonly unprovenErase: UnprovenErase | null;
  /** The last power state that the BMC reported after the release; null if nobody has asked the BMC. */
  readonly power: string | null;
  readonly secrets: readonly ChosenSecret[] | null;
}

export function leftSecrets(secrets: readonly ChosenSecret[]): LeftThing[] {
  return secrets
    .filter(({ outcome }) => outcome !== "removed")
    .map((secret) => ({
      what: `${secret.outcome === "kept" ? "The secret store keeps" : "The secret store still has"} ${nameOf(secret)}${secret.reason === null ? "" : `, because ${secret.reason}`}.`,
      todo:
        secret.login === null
          ? `Remove the secret ${secret.path} from the secret store.`
          : `Delete the BMC login ${secret.login.id} (delete-power-credential-override) if no other host needs it.`,
    }));
}

const NOT_CHOSEN: LeftThing = {
  what: "The node's secrets may still be in the secret store.",
  todo: "Delete the BMC logins that were written for this host alone.",
};
const FREE: readonly number[] = [MAAS_STATUS.new, MAAS_STATUS.ready];
const TAKEN_BACK: readonly number[] = [...FREE, MAAS_STATUS.releasing, MAAS_STATUS.disk_erasing];
const isTakenBack = (machine: FullFacts["machine"]): boolean =>
  machine !== null && machine !== "unknown" && TAKEN_BACK.includes(machine.status);

function leftNode({ hostname, node, released, systemId }: FullFacts): LeftThing {
  if (node === "deleted") return { what: `Node ${hostname} is deleted, which cannot be undone.`, todo: "" };
  return released
    ? {
        what: `Node ${hostname} stays ${node} and cannot be activated again, because its machine was released, which cannot be undone.`,
        todo: "Remove the node.",
      }
    : {
        what: `Node ${hostname} is ${node}, and machine ${systemId} was not released.`,
        todo: "Activate the node, or decommission it again.",
      };
}

function leftMachine({ machine, systemId, removeMaasRecord }: FullFacts): LeftThing[] {
  if (machine === null) return [{ what: `Machine ${systemId} is not in MAAS any more.`, todo: "" }];
  const now = machine === "unknown" ? "may still be in MAAS" : `is '${machine.statusName}' in MAAS`;
  if (removeMaasRecord)
    return [
      {
        what: `Machine ${systemId} ${now}, although the request asks to delete it.`,
        todo: "Delete the machine in MAAS, or onboard the host again.",
      },
    ];
  const isFree = machine !== "unknown" && FREE.includes(machine.status);
  const todo = isFree
    ? "The host may be onboarded again."
    : "Once the machine is Ready in MAAS, the host may be onboarded again.";
  return [{ what: `Machine ${systemId} ${now}.`, todo }];
}

function leftPower({ node, power }: FullFacts): LeftThing {
  // The decommission deletes the node only after the BMC has reported that the machine is off.
  if (node === "deleted" || power === "off") return { what: "The host is powered off.", todo: "" };
  const why = power === null ? "its BMC was not asked after the release" : `its BMC last reported '${power}'`;
  return { what: `Nothing proves that the host is off: ${why}.`, todo: "See in MAAS that the machine is off." };
}

export function leftErase(erase: UnprovenErase | null): LeftThing[] {
  if (erase === null) return [];
  const decided = erase.waivedBy === null ? "" : `, and ${erase.waivedBy} decided to continue without evidence`;
  return [
    {
      what: `Nothing proves that the erase of the disks (${erase.kind}) ended well${decided}.`,
      todo: "Erase the disks before the host is passed on.",
    },
  ];
}

/** Everything that a full decommission leaves after its node's retirement, in the order of its stages. */
export function leftBy(facts: FullFacts): LeftThing[] {
  if (facts.node !== "deleted" && facts.node !== "retired" && facts.node !== "removing") return [];
  if (facts.node !== "deleted" && !facts.released) return [leftNode(facts)];
  const { unprovenErase, secrets } = facts;
  return [
    leftNode(facts),
    ...leftErase(unprovenErase),
    ...leftMachine(facts),
    ...(facts.machine === null ? [] : [leftPower(facts)]),
    ...(secrets === null ? [NOT_CHOSEN] : leftSecrets(secrets)),
  ];
}

const LONGEST = 4_000;
export function leftoverOf(things: readonly LeftThing[], evidence: Evidence): Leftover | null {
  if (things.length === 0) return null;
  const todos = [...new Set(things.map(({ todo }) => todo))].filter((todo) => todo !== "");
  return {
    message: things
      .map(({ what }) => what)
      .join(" ")
      .slice(0, LONGEST),
    nextAction: (todos.join(" ") || "There is nothing to do.").slice(0, LONGEST),
    evidence: { ...evidence, left: things.map(({ what }) => what.slice(0, 512)) },
  };
}

export async function lastSeen(
  db: Db,
  { siteId, maasSystemId }: DecommissionContext["decommission"],
): Promise<FullFacts["machine"]> {
  if (siteId === null || maasSystemId === null) return "unknown";
  const row = await readObservedMachine(db, siteId, maasSystemId);
  return row === null ? "unknown" : row.absent ? null : row;
}

/** An older version of Muster recorded a machine as free only after evidence of the erase, or after a person waived the evidence. */
export function unprovenErase({
  node,
  input,
  state,
}: Pick<DecommissionContext, "node" | "input" | "state">): UnprovenErase | null {
  const { generation } = node;
  if (input.erase === "none" || state.erase_reported === generation) return null;
  if (state.erase_waived === generation) return { kind: input.erase, waivedBy: state.erase_waived_by ?? "a person" };
  const isFree = node.status === "deleted" || state.machine_free === generation;
  return isFree ? null : { kind: input.erase, waivedBy: null };
}

export function fullFacts(context: DecommissionContext, machine: FullFacts["machine"]): FullFacts {
  const { decommission, node, input, state } = context;
  return {
    hostname: decommission.hostname,
    node: node.status,
    // The hub may write the release and the failure of a decommission in one transaction, so a machine that MAAS shows as free, releasing or erasing
    // also counts as released.
    released: decommission.releasedGeneration === node.generation || isTakenBack(machine),
    systemId: decommission.maasSystemId ?? "of the node",
    machine,
    removeMaasRecord: input.remove_maas_record,
    unprovenErase: unprovenErase(context),
    power: state.power_state ?? null,
    secrets: decommission.secrets,
  };
}
