import { randomUUID } from "node:crypto";
import { maasMachines, type NodeMaasState, nodeCertificates, nodeMaasState } from "../../hub/db/schema/index.ts";
import type { Tx } from "../../hub/db/tx.ts";
import { createNode } from "../../hub/node/create-node.ts";
import { enterDraining, retire } from "../../hub/node/lifecycle.ts";
import { moveNode } from "../../hub/node/move-node.ts";
import { NodeId, type SiteId } from "../../shared/ids.ts";

interface Host {
  readonly siteId: SiteId;
  readonly hostname: string;
}

export async function addNode(tx: Tx, { siteId, hostname }: Host): Promise<NodeId> {
  const id = NodeId.parse(randomUUID());
  const facts = { sku: "s", gpusTotal: 8, regionCode: "r1", onboardingMode: "maas", owner: "onboarding" } as const;
  await createNode(tx, { id, hostname, siteId, ...facts });
  return id;
}

export async function addActiveNode(tx: Tx, host: Host): Promise<NodeId> {
  const id = await addNode(tx, host);
  await moveNode(tx, id, { from: "enrolling", to: "active", owner: "onboarding" }, "ready");
  return id;
}

export async function addNodeInService(tx: Tx, host: Host): Promise<NodeId> {
  const nodeId = await addActiveNode(tx, host);
  const times = { notBefore: new Date(0), notAfter: new Date(Date.now() + 1e9) };
  await tx.insert(nodeCertificates).values({
    serial: randomUUID(),
    nodeId,
    generation: 0,
    publicKeySha256: "0",
    ...times,
  });
  return nodeId;
}

export async function retireNode(tx: Tx, id: NodeId): Promise<void> {
  await enterDraining(tx, id, randomUUID(), "old");
  await retire(tx, id, "old");
}

/** Writes a node's machine as the watcher does, with the hostname as the machine's system id. */
export async function addMachine(
  tx: Tx,
  { siteId, hostname, nodeId }: Host & { readonly nodeId: NodeId },
  seen: { readonly status: number } & Partial<NodeMaasState>,
): Promise<void> {
  const { status, ...state } = seen;
  await tx.insert(nodeMaasState).values({ nodeId, siteId, maasSystemId: hostname, ipmiIp: "10.0.0.1", ...state });
  const texts = { hostname, statusName: `status ${status}`, statusMessage: "", errorDescription: "" };
  const rest = { powerState: "on", locked: false, ipAddresses: [] };
  await tx.insert(maasMachines).values({ siteId, systemId: hostname, status, ...texts, ...rest });
}
