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

/** Throws `machine_vanished` if MAAS no longer has the workflow's machine (lifecycle 4.11). */
export async function freshMachine(context: ProvisionContext): Promise<MaasMachine> {
  const systemId = systemIdOf(context);
  const machine = await (await maasOf(context)).readMachine(systemId);
  if (machine !== null) return machine;
  const message = `Machine ${context.host.hostname} (${systemId}) is not in MAAS any more. If it was re-created, restart clean; else start a new ${context.operation}.`;
  throw new StageFailure(failure("state_ambiguity", "machine_vanished", message, { maas_system_id: systemId }));
}

const meantToDeploy = ({ state }: ProvisionContext): boolean =>
  state.deploy_intent !== null && state.deploy_intent !== undefined;

/**
 * Compares the machine's owner with the name that Muster's MAAS user had when the deploy was requested. The argument `now` is the present name of
 * Muster's MAAS user, whom somebody may have renamed since the deploy.
 */
const isOursAs = (context: ProvisionContext, { owner }: Pick<MaasMachine, "owner">, now: string | null): boolean => {
  const name = context.state.maas_username;
  if (!meantToDeploy(context) || owner === null || typeof name !== "string") return false;
  return isSameOwner(name, owner, now === null ? null : { name: now, formerNames: [name] });
};

/**
 * True if the workflow meant to deploy the machine and Muster's MAAS user owns the machine. If somebody renamed Muster's MAAS user, MAAS also shows
 * the new name as the machine's owner.
 */
export async function isOurs(context: ProvisionContext, machine: Pick<MaasMachine, "owner">): Promise<boolean> {
  if (isOursAs(context, machine, null)) return true;
  if (!meantToDeploy(context) || machine.owner === null) return false;
  return isOursAs(context, machine, (await (await maasOf(context)).whoami()).username);
}

/** `judgeMachine` asks MAAS for the present name of Muster's MAAS user only if the verdict on the machine depends on the name. */
export async function judgeMachine(at: Judging, context: ProvisionContext, machine: JudgedMachine): Promise<Judgement> {
  const [ours, others] = [judge(at, machine, true), judge(at, machine, false)];
  return sameVerdict(ours, others) || (await isOurs(context, machine)) ? ours : others;
}

const sameVerdict = (one: Judgement, other: Judgement): boolean =>
  one.kind === "failed" && other.kind === "failed" ? one.failure.code === other.failure.code : one.kind === other.kind;

/**
 * Judges the machine by the hub's last stored observation, which may be old. The judgement of `judgeSeen` decides only whether the stage reads the
 * machine from MAAS.
 */
export const judgeSeen = (at: Judging, context: ProvisionContext, machine: JudgedMachine): Judgement =>
  judge(at, machine, isOursAs(context, machine, null));

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

/** The stages that wait for the deployed host, and judge its machine meanwhile. */
type WaitsForHost =
  | "ensure_hardware_sync_configured"
  | "wait_for_hardware_sync_healthy"
  | "wait_for_agent_enrollment"
  | "check_hardware";

/**
 * If somebody released, broke, took or deleted the machine, a stage that waits for the host fails at once (decision M2). `machineTaken` returns null
 * if the machine is still deployed by the workflow.
 */
export async function machineTaken(
  stage: WaitsForHost,
  context: ProvisionContext,
): Promise<Failed<ProvisionState> | null> {
  const machine = await watchedMachine(context, (row) => judgeSeen(stage, context, row).kind === "failed");
  const verdict = machine === null ? null : await judgeMachine(stage, context, machine);
  return verdict?.kind === "failed" ? verdict : null;
}

/** Returns the hub's last stored observation of the machine, which becomes a part of the evidence of each failure (lifecycle 4.12). */
export async function observedEvidence(context: ProvisionContext): Promise<Evidence> {
  const systemId = context.state.maas_system_id;
  if (typeof systemId !== "string") return {};
  return seenEvidence(context.services.db, context.site.id, systemId);
}

export const waitForMachine = (context: ProvisionContext, reason: string): Wait<ProvisionState> =>
  waitForObservation(context.site.id, systemIdOf(context), reason);
