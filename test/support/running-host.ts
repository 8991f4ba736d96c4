/** A running host on which a person runs a bootstrap command: its agent enrolls, and reports which host it runs on. */
import { randomUUID } from "node:crypto";
import { EnrollResponse } from "../../shared/api/enroll.ts";
import type { NodeId } from "../../shared/ids.ts";
import type { Inventory } from "../../shared/inventory.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { type GatewayRig, makeKey } from "./gateway-rig.ts";
import { SocketAgent } from "./socket-agent.ts";

export const tokenIn = (command: string): string => /Bearer %s" ([\w-]+)\)/.exec(command)?.[1] ?? "";
export const macOf = (machine: Machine): string => machine.interfaces[0]?.macAddress ?? "";

interface Enrolling {
  readonly id: NodeId;
  readonly token: string;
  readonly macs: string[];
  readonly bootId: string;
}

export async function enrollHost(rig: GatewayRig, { id, token, macs, bootId }: Enrolling) {
  const key = await makeKey();
  const request = { ...(await rig.enrollRequest(id, token, key)), macs, boot_id: bootId };
  const answer = await rig.enroll(request);
  if (answer.status !== 200) return { answer, agent: null, bootId };
  const { certificate_pem: certPem, generation } = EnrollResponse.parse(answer.json);
  const identity = { nodeId: id, generation, certPem, keyPem: key.keyPem };
  const agent = await SocketAgent.connect(rig, identity, { hello: { boot_id: bootId } });
  return { answer, agent, bootId };
}

interface Reported {
  readonly bootId: string;
  readonly uuid: string;
  readonly macs: readonly string[];
  /** The number of GPUs; the SKU of the tests has eight. */
  readonly gpus?: number;
}

export const inventoryOf = ({ bootId, uuid, macs, gpus = 8 }: Reported): Inventory => ({
  hostname: "h",
  boot_id: bootId,
  system: { manufacturer: "m", model: "m", uuid },
  os: { distro: "d", release: "r", kernel: "k", arch: "a" },
  cpu: { model: "m", cores: 8, sockets: 1 },
  memory_bytes: 1,
  disks: [],
  interfaces: macs.map((mac, n) => ({ name: `e${n}`, mac, ipv4: [], speed_mbps: null })),
  gpus: Array.from({ length: gpus }, () => ({
    vendor: "Advanced Micro Devices, Inc.",
    model: "MI300X",
    bus: "",
    memory_bytes: null,
  })),
});

export function tellHealthy(agent: SocketAgent, generation: number, bootId: string): void {
  const said = { status: "True", reason: "Test", message: "m", observed_at: new Date().toISOString() } as const;
  const conditions = ["agent.healthy", "os.booted"].map((type) => ({ type, ...said }));
  agent.send({ type: "readiness", signal: { signal_id: randomUUID(), generation, boot_id: bootId, conditions } });
}
