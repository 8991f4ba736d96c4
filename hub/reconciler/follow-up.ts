import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import { MAAS_STATUS } from "../../shared/maas-status.ts";
import type { InTx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import { MaasError, type MaasPort } from "../maas/port.ts";
import { startDecommission } from "../workflows/decommission/start-decommission.ts";

/** What a judgement asks for once it is recorded; the next pass asks again while it is still needed. */
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

/** Who the operations of the reconciler are requested by. */
const RECONCILER = "reconciler";

/** A refusal is logged: the drift that asked for it stays, and says so. */
export async function followUp(services: FollowUpServices, asked: FollowUp): Promise<void> {
  const { log } = services;
  try {
    if (asked.kind === "enable_hardware_sync") await enableHardwareSync(services, asked);
    else await releaseMachine(services, asked);
  } catch (error) {
    if (!(error instanceof MaasError) && !(error instanceof ApiError)) throw error;
    log.warn("what a drift asked for was refused", { action: asked.kind, node_id: asked.nodeId, code: error.code });
  }
}

/** Looks at the machine afresh before it is changed: only what is deployed, unlocked and ours (architecture 9). */
async function enableHardwareSync(
  { maas }: FollowUpServices,
  { systemId, maasUser }: Extract<FollowUp, { kind: "enable_hardware_sync" }>,
): Promise<void> {
  const machine = await maas.readMachine(systemId);
  if (machine === null || machine.status !== MAAS_STATUS.deployed || machine.locked || machine.owner !== maasUser)
    return;
  if (machine.enableHwSync === false) await maas.updateMachine(systemId, { enableHwSync: true });
}

/** An operation of its own, which looks at the machine afresh and holds the node: so it is done once, whoever asks for it meanwhile. */
const releaseMachine = (
  { inTx }: FollowUpServices,
  { nodeId, message }: Extract<FollowUp, { kind: "release_machine" }>,
): Promise<unknown> => inTx((tx) => startDecommission(tx, nodeId, { mode: "release", reason: message }, RECONCILER));
