import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { MAAS_STATUS } from "../../shared/maas-status.ts";
import type { InTx } from "../db/tx.ts";
import { MaasError, type MaasPort } from "../maas/port.ts";
import { startDecommission } from "../workflows/decommission/start-decommission.ts";

/** If the reconciler did not make a needed call to MAAS, or the call failed, the next judgement of the node requires the call again. */
export type FollowUp =
  | {
      readonly kind: "enable_hardware_sync";
      readonly nodeId: NodeId;
      readonly systemId: string;
      readonly maasUser: string;
    }
  | { readonly kind: "release_machine"; readonly nodeId: NodeId; readonly message: string };

interface FollowUpServices {
  readonly inTx: InTx;
  readonly log: Log;
  readonly maas: MaasPort;
}

/** The reconciler's name as the requester of its operations. */
const RECONCILER = "reconciler";

/** If MAAS refuses a call that should correct a drift, `followUp` only logs the refusal, and the drift stays visible. */
export async function followUp(services: FollowUpServices, asked: FollowUp): Promise<void> {
  const { log } = services;
  try {
    if (asked.kind === "enable_hardware_sync") await enableHardwareSync(services, asked);
    else await releaseMachine(services, asked);
  } catch (error) {
    if (!(error instanceof MaasError) && !(error instanceof ApiError)) throw error;
    log.warn("the action for a drift was refused", { action: asked.kind, node_id: asked.nodeId, code: error.code });
  }
}

/**
 * Reads a machine in MAAS, and enables its hardware sync. `enableHardwareSync` changes only a machine that is deployed, unlocked and owned by the
 * hub's user (architecture 9).
 */
async function enableHardwareSync(
  { maas }: FollowUpServices,
  { systemId, maasUser }: Extract<FollowUp, { kind: "enable_hardware_sync" }>,
): Promise<void> {
  const machine = await maas.readMachine(systemId);
  if (machine === null || machine.status !== MAAS_STATUS.deployed || machine.locked || machine.owner !== maasUser)
    return;
  if (machine.enableHwSync === false) await maas.updateMachine(systemId, { enableHwSync: true });
}

/**
 * Starts a decommission that releases the node's machine. The decommission reads the machine before it acts, and holds its node, so several requests
 * to release a machine cause only one release.
 */
const releaseMachine = (
  { inTx }: FollowUpServices,
  { nodeId, message }: Extract<FollowUp, { kind: "release_machine" }>,
): Promise<unknown> => inTx((tx) => startDecommission(tx, nodeId, { mode: "release", reason: message }, RECONCILER));
