import { type Evidence, failure } from "../../../shared/failures.ts";
import type { MaasMachineRow } from "../../db/schema/index.ts";
import type { MaasMachine } from "../../maas/port.ts";
import { isSameOwner } from "../../maas/same-owner.ts";
import type { Failed, Wait } from "../engine/stage.ts";
import { type JudgedMachine, type Judgement, type Judging, judge } from "../machine/verdict-table.ts";
import { seenEvidence, waitForObservation, watchMachine } from "../machine/watch-machine.ts";
import { StageFailure } from "../stage-failure.ts";
import { maasOf, type ProvisionContext, systemIdOf } from "./context.ts";
import type { ProvisionState } from "./provision-state.ts";

/** Reads the one machine from MAAS. Throws `machine_vanished` when it is gone (lifecycle 4.11). */
export async function freshMachine(context: ProvisionContext): Promise<MaasMachine> {
  const systemId = systemIdOf(context);
  const machine = await (await maasOf(context)).readMachine(systemId);
  if (machine !== null) return machine;
  const message = `Machine ${context.host.hostname} (${systemId}) is not in MAAS any more. If it was re-created, restart clean; else start a new ${context.operation}.`;
  throw new StageFailure(failure("state_ambiguity", "machine_vanished", message, { maas_system_id: systemId }));
}

const meantToDeploy = ({ state }: ProvisionContext): boolean =>
  state.deploy_intent !== null && state.deploy_intent !== undefined;

/** Compares the owner with the name that our MAAS user had when the deploy was requested and, if it is given, with the name that the user has now. */
const isOursAs = (context: ProvisionContext, { owner }: Pick<MaasMachine, "owner">, now: string | null): boolean => {
  const name = context.state.maas_username;
  if (!meantToDeploy(context) || owner === null || typeof name !== "string") return false;
  return isSameOwner(name, owner, now === null ? null : { name: now, formerNames: [name] });
};

/**
 * Whether this workflow meant to deploy the machine and our MAAS user owns it. Only then is a deployed machine the workflow's own work. A user that was
 * renamed in MAAS still counts, under the name that the token's user has now.
 */
export async function isOurs(context: ProvisionContext, machine: Pick<MaasMachine, "owner">): Promise<boolean> {
  if (isOursAs(context, machine, null)) return true;
  if (!meantToDeploy(context) || machine.owner === null) return false;
  return isOursAs(context, machine, (await (await maasOf(context)).whoami()).username);
}

/** Asks MAAS for our user's present name only if the verdict depends on it. */
export async function judgeMachine(at: Judging, context: ProvisionContext, machine: JudgedMachine): Promise<Judgement> {
  const [ours, others] = [judge(at, machine, true), judge(at, machine, false)];
  return sameVerdict(ours, others) || (await isOurs(context, machine)) ? ours : others;
}

const sameVerdict = (one: Judgement, other: Judgement): boolean =>
  one.kind === "failed" && other.kind === "failed" ? one.failure.code === other.failure.code : one.kind === other.kind;

/** Judges the watcher's last observation. It may be old, so it only decides whether the stage reads the machine from MAAS. */
export const judgeSeen = (at: Judging, context: ProvisionContext, machine: JudgedMachine): Judgement =>
  judge(at, machine, isOursAs(context, machine, null));

/** The machine as MAAS has it now, if there was a reason to read it (`watchMachine`). Null: nothing new. */
export const watchedMachine = (
  context: ProvisionContext,
  concludes: (row: MaasMachineRow) => boolean,
): Promise<MaasMachine | null> =>
  watchMachine(
    {
      db: context.services.db,
      inTx: context.services.inTx,
      siteId: context.site.id,
      systemId: systemIdOf(context),
      now: context.now,
      deadline: context.deadline,
      fresh: () => freshMachine(context),
    },
    concludes,
  );

/**
 * For stages that wait for the host and not for MAAS. If somebody released, broke, took or deleted the machine, the wait ends at once (decision M2) and not
 * only at its deadline. Null: the machine is still deployed by this workflow. Throws `machine_vanished`.
 */
export async function machineTaken(
  stage: "ensure_hardware_sync_configured" | "wait_for_hardware_sync_healthy" | "wait_for_agent_enrollment",
  context: ProvisionContext,
): Promise<Failed<ProvisionState> | null> {
  const machine = await watchedMachine(context, (row) => judgeSeen(stage, context, row).kind === "failed");
  const verdict = machine === null ? null : await judgeMachine(stage, context, machine);
  return verdict?.kind === "failed" ? verdict : null;
}

/** The watcher's last observation of the machine, which each failure shows to the operator (lifecycle 4.12). */
export async function observedEvidence(context: ProvisionContext): Promise<Evidence> {
  const systemId = context.state.maas_system_id;
  if (typeof systemId !== "string") return {};
  return seenEvidence(context.services.db, context.site.id, systemId);
}

export const waitForMachine = (context: ProvisionContext, reason: string): Wait<ProvisionState> =>
  waitForObservation(context.site.id, systemIdOf(context), reason);
