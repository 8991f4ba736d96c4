import type { NodeId, SiteId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { MAAS_STATUS } from "../../shared/maas-status.ts";
import type { PowerError } from "../../shared/power.ts";
import { lockOpenAllocation } from "../db/queries/allocations.ts";
import { lockNode } from "../db/queries/nodes.ts";
import {
  type Asked,
  type ClaimedPowerAction,
  claimPowerActions,
  endPowerAction,
  insertPowerAction,
  newestPowerActions,
  noteAsked,
  notePowerWait,
  noteShutdownAccepted,
  type PowerEnd,
  perhapsOffAlthoughEnding,
} from "../db/queries/power-actions.ts";
import type { PowerAction } from "../db/schema/index.ts";
import type { Db, InTx } from "../db/tx.ts";
import { MaasError, type MaasErrorCode, type MaasMachine, type MaasPort } from "../maas/port.ts";
import { SecretError } from "../secrets/port.ts";
import { periodically } from "../timing/periodically.ts";
import { otherHostAtBmc } from "../workflows/decommission/own-bmc.ts";
import { DEADLINE_SECONDS, nextStep, type PowerCommand, type PowerStep } from "./next-step.ts";
import { standingOf } from "./standing.ts";
import { tellPower } from "./tell.ts";

const EVERY_MS = 2_000;
/** The number of power actions on which a hub works at once. Each running power action waits for a BMC. */
const AT_ONCE = 16;
/** The number of power actions of one site on which all hubs together work at once, because a MAAS region serves only a few BMCs at a time. */
const AT_ONCE_OF_SITE = 8;
/** The time limit of one step of a power action; after this time the hub gives the step up, and the next step reads the machine again. */
const STEP_MS = 150_000;
/** A hub's claim on a power action lasts longer than one step, so that no second hub works on the action during the step. */
const LEASE_SECONDS = 200;
const AFTER_ERROR_SECONDS = 30;
const BY = "muster";

export interface PowerSweep {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
  readonly maas: (siteId: SiteId, signal?: AbortSignal) => Promise<MaasPort>;
}

/**
 * Begins the next step of each power action that is due, but of at most `most` actions, and returns the running steps. Any hub may call `beginSteps`
 * at any time, because a hub claims a power action before each step.
 */
export async function beginSteps(sweep: PowerSweep, most = AT_ONCE): Promise<Promise<void>[]> {
  if (most <= 0) return [];
  for (const nodeId of await perhapsOffAlthoughEnding(sweep.db, most))
    await switchOnForCleaning(sweep, nodeId).catch((error: unknown) =>
      sweep.log.warn("a host could not be switched on for its cleaning; the next sweep tries again", {
        node_id: nodeId,
        error,
      }),
    );
  const claimed = await sweep.inTx((tx) =>
    claimPowerActions(tx, { most, mostOfSite: AT_ONCE_OF_SITE, leaseSeconds: LEASE_SECONDS }),
  );
  return claimed.map((one) => step(sweep, one));
}

/**
 * Powers on the host of an allocation that ends, because the host's agent must remove what the tenant left. The new power action replaces the node's
 * newest one and keeps the times of its commands, because the host may still follow those commands.
 */
const switchOnForCleaning = ({ inTx }: PowerSweep, nodeId: NodeId): Promise<void> =>
  inTx(async (tx) => {
    const node = await lockNode(tx, nodeId);
    const allocation = await lockOpenAllocation(tx, nodeId);
    const off = (await newestPowerActions(tx, [nodeId])).get(nodeId);
    if (node === null || off === undefined || allocation?.status !== "ending") return;
    if ((await perhapsOffAlthoughEnding(tx, 1, nodeId)).length === 0) return;
    const reason = "The allocation ends, and the host must be on to be cleaned";
    const ended = await endPowerAction(tx, off, { state: "superseded", errorCode: null, errorMessage: reason });
    if (ended !== null) await tellPower(tx, ended, BY, reason);
    const { siteId, maasSystemId, hostname, generation, bootId, shutdownAskedAt, shutdownAcceptedAt } = off;
    const { offAskedAt, onAskedAt, offSeenAt } = off;
    const action = await insertPowerAction(tx, {
      ...{ nodeId, hostname, generation, siteId, maasSystemId, allocationId: allocation.id, tenant: allocation.tenant },
      ...{ bootId, shutdownAskedAt, shutdownAcceptedAt, offAskedAt, onAskedAt, offSeenAt, forCleaning: true },
      ...{ verb: "on", immediate: false, requestedBy: BY, reason, deadlineSeconds: DEADLINE_SECONDS.on },
    });
    if (action !== null) await tellPower(tx, action, BY, reason);
  });

async function step(sweep: PowerSweep, claimed: ClaimedPowerAction): Promise<void> {
  const { action, now } = claimed;
  const { inTx, log } = sweep;
  try {
    await carryOut(sweep, claimed);
  } catch (error) {
    const code = error instanceof MaasError ? ENDING[error.code] : undefined;
    const isExpected = error instanceof MaasError || error instanceof SecretError;
    const message = isExpected ? error.message : "The hub met an unexpected error; its log says which";
    if (!isExpected) log.warn("a power action could not continue", { action_id: action.id, error });
    if (code !== undefined) return end(sweep, action, { state: "failed", errorCode: code, errorMessage: message });
    if (now >= action.deadlineAt)
      return end(sweep, action, { state: "failed", errorCode: "power_state_unknown", errorMessage: message });
    const wait = { reason: message, seconds: AFTER_ERROR_SECONDS, offSeen: false };
    await inTx((tx) => notePowerWait(tx, action, wait)).catch((second: unknown) =>
      log.warn("the wait of a power action could not be written; its claim ends by itself", { error: second }),
    );
  }
}

/**
 * The MAAS errors after which the hub does not repeat a power command, because a repetition would get the same error. A BMC may lock an account after
 * refused logins (decision M19).
 */
const ENDING: Partial<Record<MaasErrorCode, PowerError>> = {
  power_login_refused: "bmc_login_refused",
  forbidden: "maas_refused",
  rejected_input: "maas_refused",
};

const ASKED: Readonly<Record<PowerCommand, Asked>> = {
  shutdown: "shutdownAskedAt",
  off: "offAskedAt",
  on: "onAskedAt",
};

async function carryOut(sweep: PowerSweep, { action, now }: ClaimedPowerAction): Promise<void> {
  const { inTx } = sweep;
  const standing = await inTx((tx) => standingOf(tx, action));
  if (!standing.stands) return end(sweep, action, { state: "superseded", errorCode: null, errorMessage: standing.why });
  const maas = await sweep.maas(action.siteId, AbortSignal.timeout(STEP_MS));
  const machine = await maas.readMachine(action.maasSystemId);
  const problem = cannotSwitch(machine, (await maas.whoami()).username, action);
  if (problem !== null)
    return end(sweep, action, { state: "failed", errorCode: "machine_not_usable", errorMessage: problem });
  const power = await maas.queryPowerState(action.maasSystemId);
  await act(sweep, maas, action, nextStep(action, { power, agent: standing.session, now }));
}

async function act(sweep: PowerSweep, maas: MaasPort, action: PowerAction, next: PowerStep): Promise<void> {
  const { inTx, db } = sweep;
  if (next.kind === "done") return end(sweep, action, { state: "done", errorCode: null, errorMessage: null });
  if (next.kind === "failed")
    return end(sweep, action, { state: "failed", errorCode: next.code, errorMessage: next.message });
  if (next.kind === "wait") return inTx((tx) => notePowerWait(tx, action, next));
  const { nodeId, hostname, siteId, maasSystemId: systemId } = action;
  const other = await otherHostAtBmc(db, maas, { nodeId, hostname, siteId, systemId });
  if (other !== null)
    return end(sweep, action, { state: "failed", errorCode: "machine_not_usable", errorMessage: other.message });
  const mayAsk = await inTx(
    async (tx) => (await standingOf(tx, action)).stands && noteAsked(tx, action, ASKED[next.command]),
  );
  if (!mayAsk) return;
  try {
    if (next.command === "on") await maas.powerOn(systemId);
    else await maas.powerOff(systemId, { soft: next.command === "shutdown" });
    if (next.command === "shutdown") await inTx((tx) => noteShutdownAccepted(tx, action));
  } finally {
    const { reason, offSeen } = next;
    await inTx((tx) => notePowerWait(tx, action, { reason, seconds: AFTER_COMMAND_SECONDS, offSeen }));
  }
}

const AFTER_COMMAND_SECONDS = 5;

async function end({ inTx }: PowerSweep, action: PowerAction, how: PowerEnd): Promise<void> {
  await inTx(async (tx) => {
    const ended = await endPowerAction(tx, action, how);
    if (ended !== null)
      await tellPower(tx, ended, BY, how.errorMessage ?? `asked by ${action.requestedBy}: ${action.reason}`);
  });
}

/** Returns the reason why Muster must not switch the machine's power, or null if Muster may do so. */
function cannotSwitch(machine: MaasMachine | null, us: string, { maasSystemId, hostname }: PowerAction): string | null {
  const name = `Machine ${maasSystemId} of node ${hostname}`;
  if (machine === null) return `${name} is not in MAAS any more.`;
  if (machine.status !== MAAS_STATUS.deployed)
    return `${name} is '${machine.statusName}' in MAAS, so somebody works on it, and its power is left alone.`;
  if (machine.owner !== us)
    return `${name} belongs to ${machine.owner ?? "nobody"} in MAAS, so its power is left alone.`;
  return machine.locked ? `${name} is locked in MAAS, so its power is left alone.` : null;
}

/**
 * Every two seconds the hub begins the next step of each power action that is due. A power action that waits for a BMC does not delay other power
 * actions while the hub has a free place for a step (`AT_ONCE`).
 */
export function startPowerSweep(sweep: PowerSweep): { close(): Promise<void> } {
  const running = new Set<Promise<void>>();
  const turns = periodically({
    everyMs: EVERY_MS,
    turn: async () => {
      for (const one of await beginSteps(sweep, AT_ONCE - running.size)) {
        const kept = one
          .catch((error: unknown) => sweep.log.warn("a step of a power action failed; it is repeated", { error }))
          .finally(() => running.delete(kept));
        running.add(kept);
      }
    },
    log: sweep.log,
    failed: "the sweep of power actions failed; the next sweep tries again",
  });
  return {
    close: async () => {
      await turns.close();
      await Promise.all(running);
    },
  };
}
