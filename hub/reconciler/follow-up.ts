import type { NodeId } from "../../shared/ids.ts";
import type { Log } from "../log.ts";
import { MaasError, type MaasPort } from "../maas/port.ts";

/** What a judgement asks of MAAS, once it is recorded; the next sweep asks again while it is still needed. */
export interface FollowUp {
  readonly kind: "enable_hardware_sync";
  readonly nodeId: NodeId;
  readonly systemId: string;
  readonly maasUser: string;
}

const DEPLOYED = 6;

/** Looks at the machine afresh before it is changed: only what is deployed, unlocked and ours (architecture 5). A refusal of MAAS is logged. */
export async function followUp(maas: MaasPort, { nodeId, systemId, maasUser }: FollowUp, log: Log): Promise<void> {
  try {
    const machine = await maas.readMachine(systemId);
    if (machine === null || machine.status !== DEPLOYED || machine.locked || machine.owner !== maasUser) return;
    if (machine.enableHwSync === false) await maas.updateMachine(systemId, { enableHwSync: true });
  } catch (error) {
    if (!(error instanceof MaasError)) throw error;
    log.warn("hardware sync could not be enabled in MAAS", { node_id: nodeId, system_id: systemId, code: error.code });
  }
}
