import { type Evidence, failure } from "../../../shared/failures.ts";
import type { SiteId } from "../../../shared/ids.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import type { DecommissionMode } from "../../../shared/workflow-status.ts";
import { recordReinstall } from "../../db/queries/allocations.ts";
import { generationReleasedBy, readMaasSystemId, recordMachineReleased } from "../../db/queries/decommissions.ts";
import { revokeEnrollmentTokens } from "../../db/queries/enrollment-tokens.ts";
import { revokeCertificates } from "../../db/queries/node-certificates.ts";
import { lockNode } from "../../db/queries/nodes.ts";
import { cancelAllTasks } from "../../db/queries/tasks.ts";
import type { MaasMachineRow, MaasSiteProfile, Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import type { MaasMachine, MaasPort } from "../../maas/port.ts";
import { enterReimage } from "../../node/lifecycle.ts";
import type { Wait } from "../engine/stage.ts";
import {
  type MachineWatch,
  readAndObserve,
  seenEvidence,
  waitForObservation,
  watchMachine,
} from "../machine/watch-machine.ts";
import { inFencedTx } from "../services.ts";
import { StageFailure } from "../stage-failure.ts";
import { type DecommissionContext, type DecommissionState, stateConflict } from "./decommission-context.ts";
import { deploysAnew } from "./keeps-status.ts";
import { baselineDisks } from "./known-disks.ts";
import { asksWhoOwns, judgeRelease, type ReleaseJudgement, type ReleaseStage } from "./release-verdicts.ts";

/**
 * For each mode, the statuses that a node may have while Muster releases its machine. The mode `release` accepts a deleted node, because the node's
 * machine may still be deployed in MAAS.
 */
const RELEASED_WHILE: Readonly<Record<DecommissionMode, readonly NodeStatus[]>> = {
  drain: [],
  remove: [],
  release: ["retired", "deleted"],
  soft_reset: [],
  reimage: ["active", "offline", "quarantined", "enrolling"],
  storage_cleanup: [],
  full_decommission: ["retired"],
  reinstall: ["active", "offline", "quarantined", "enrolling"],
};

export function machineOf({ decommission }: DecommissionContext): { siteId: SiteId; systemId: string } {
  const { siteId, maasSystemId: systemId, hostname } = decommission;
  if (siteId !== null && systemId !== null) return { siteId, systemId };
  const message = `Node ${hostname} had no machine in MAAS when the release was requested. Cancel the release.`;
  throw new StageFailure(failure("state_ambiguity", "node_state_conflict", message));
}

export const maasOf = (context: DecommissionContext): Promise<MaasPort> =>
  context.services.maas(machineOf(context).siteId);

/** The profile of the node's onboarding, which sets the timeouts of a release (decision M7). */
export function profileOf({ profile, decommission }: DecommissionContext): MaasSiteProfile {
  if (profile !== null) return profile;
  const message = `Node ${decommission.hostname} was created by no onboarding, so no profile says how long its release may take. Cancel the release.`;
  throw new StageFailure(failure("input_config_error", "profile_unknown", message));
}

/** True if a full decommission has already removed its node, which happens only after the release and the power-off. */
export const wasRemoved = ({ decommission, node }: DecommissionContext): boolean =>
  decommission.mode === "full_decommission" && node.status === "deleted";
export const RELEASED_BEFORE = {
  kind: "skipped",
  message: "The machine was released and off before the node was removed",
} as const;

/** Throws `node_state_conflict` if the node's status allows no release, or if the node is now bound to another machine. */
export function mustStandForRelease(
  context: DecommissionContext,
  node: Pick<Node, "status" | "generation"> | null,
  boundSystemId: string | null,
): void {
  const { systemId } = machineOf(context);
  if (node === null || !RELEASED_WHILE[context.decommission.mode].includes(node.status))
    throw new StageFailure(stateConflict(context, node?.status ?? null, "released"));
  const stands = boundSystemId === systemId || (node.status === "deleted" && boundSystemId === null);
  if (stands && node.generation === context.node.generation) return;
  const message = `Node ${context.node.hostname} is bound to machine ${boundSystemId ?? "none"} now, but the release was requested for machine ${systemId}. Cancel the release and request a new one.`;
  throw new StageFailure(failure("state_ambiguity", "node_state_conflict", message, { maas_system_id: systemId }));
}

/**
 * If somebody has renamed the machine of a removed node in MAAS, the machine may serve another purpose, which a release would end. Muster's own
 * records cannot show the new use of a machine that no node of Muster has.
 */
export function mustStillBeTheHost(context: DecommissionContext, machine: Pick<MaasMachine, "systemId" | "hostname">) {
  const { node, decommission } = context;
  if (node.status !== "deleted" || machine.hostname === decommission.hostname) return;
  const message = `Machine ${machine.systemId} is named ${machine.hostname} in MAAS now, so it may no longer be the host of node ${decommission.hostname}. If it still is, give it that name in MAAS and rerun; otherwise cancel.`;
  const evidence = { maas_system_id: machine.systemId, maas_hostname: machine.hostname };
  throw new StageFailure(failure("state_ambiguity", "node_state_conflict", message, evidence));
}

/** Checks the node and the fence a last time before a call to MAAS that cannot be undone. */
export const mustStillStand = (context: DecommissionContext): Promise<void> =>
  inFencedTx(context, async (tx) => {
    const node = await lockNode(tx, context.node.id);
    mustStandForRelease(context, node, await readMaasSystemId(tx, context.node.id));
  });

async function fresh(context: DecommissionContext): Promise<MaasMachine> {
  const { systemId } = machineOf(context);
  const machine = await (await maasOf(context)).readMachine(systemId);
  if (machine !== null) return machine;
  const message = `Machine ${systemId} of node ${context.node.hostname} is not in MAAS any more. If it was deleted, make sure that the host is off, cancel, and remove the node. If it comes back, rerun.`;
  throw new StageFailure(failure("state_ambiguity", "bound_machine_vanished", message, { maas_system_id: systemId }));
}

const watchOf = (context: DecommissionContext): MachineWatch => ({
  db: context.services.db,
  inTx: context.services.inTx,
  ...machineOf(context),
  now: context.now,
  deadline: context.deadline,
  fresh: () => fresh(context),
});

export const freshMachine = (context: DecommissionContext): Promise<MaasMachine> => readAndObserve(watchOf(context));

/** `watchedMachine` returns null as long as the hub's stored observation of the machine shows that MAAS has not finished the release. */
export const watchedMachine = (context: DecommissionContext, at: ReleaseStage): Promise<MaasMachine | null> =>
  watchMachine(
    watchOf(context),
    (row: MaasMachineRow) => judgeRelease(at, row, { ours: false, told: false }).kind !== "wait",
  );

/** If a verdict depends on the machine's owner, `judged` first asks MAAS for the present name of Muster's MAAS user. */
export async function judged(
  at: ReleaseStage,
  context: DecommissionContext,
  machine: MaasMachine,
): Promise<ReleaseJudgement> {
  const told = context.state.release_failure_told === true;
  if (machine.owner === null || !asksWhoOwns(at, machine.status))
    return judgeRelease(at, machine, { ours: false, told });
  const { username } = await (await maasOf(context)).whoami();
  return judgeRelease(at, machine, { ours: machine.owner === username, told });
}

export function waitForMachine(context: DecommissionContext, reason: string): Wait<DecommissionState> {
  const { siteId, systemId } = machineOf(context);
  return waitForObservation(siteId, systemId, reason);
}

/**
 * After MAAS has stopped the host's installed system, the hub revokes certificates and tokens, cancels the agent's tasks, and records the release.
 */
export const hostIsGone =
  (context: DecommissionContext) =>
  async (tx: Tx): Promise<void> => {
    const { decommission, node } = context;
    if (generationReleasedBy(decommission) === node.generation) return;
    if (deploysAnew(decommission.mode)) await enterReimage(tx, node.id, decommission.reason);
    const reason = "Its machine was released in MAAS";
    await revokeCertificates(tx, node.id, "all", reason);
    await revokeEnrollmentTokens(tx, node.id);
    await cancelAllTasks(tx, node.id);
    await recordMachineReleased(tx, decommission.decommissionId, node.generation);
    if (decommission.mode === "reinstall") await recordReinstall(tx, node, [...(await baselineDisks(tx, node))]);
  };

export async function observedMachine({ decommission, services }: DecommissionContext): Promise<Evidence> {
  const { siteId, maasSystemId } = decommission;
  return siteId === null || maasSystemId === null ? {} : seenEvidence(services.db, siteId, maasSystemId);
}
