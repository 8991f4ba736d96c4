/** Hosts of an external system and of manual mode that run the agent: none takes a tenant before the hub has compared its hardware with the SKU. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { NodeId } from "../../../shared/ids.ts";
import type { Inventory } from "../../../shared/inventory.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";
import { enrollHost, inventoryOf, tellHealthy, tokenIn } from "../../support/running-host.ts";
import { until } from "../../support/until.ts";

const ADMIN = "/api/v1/admin";
let api: ApiHarness;
let rig: GatewayRig;
let siteId: string;
let skuId: string;
beforeAll(async () => {
  api = await startApi();
  rig = await GatewayRig.start({}, api.database);
  ({ siteId } = await seedApi(api));
  skuId = "eight";
  await make("/skus", { id: skuId, gpu_vendor: "amd", gpus_total: 8 });
});
afterAll(async () => {
  await rig?.listener.close();
  await api?.close();
});

async function make(path: string, body: object, status = 201) {
  const answer = await api.ask("POST", `${ADMIN}${path}`, body);
  expect(answer.status, JSON.stringify(answer.problem)).toBe(status);
  return answer.body;
}
const nodeNow = async (id: NodeId) => (await api.ask("GET", `${ADMIN}/nodes/${id}`)).body;

/** Lets the agent enroll by the bootstrap command and report that its host is healthy. */
async function runs(id: NodeId, command: string) {
  const token = tokenIn(command);
  const { agent, bootId } = await enrollHost(rig, { id, token, macs: ["b8:59:9f:00:00:01"], bootId: randomUUID() });
  if (agent === null) throw new Error("not enrolled");
  const { generation } = await nodeNow(id);
  tellHealthy(agent, generation, bootId);
  const has = (gpus: number, more: Partial<Inventory> = {}) =>
    agent.send({ type: "inventory", inventory: { ...inventoryOf({ bootId, uuid: "", macs: [], gpus }), ...more } });
  await until("the hub to hear the agent", async () =>
    (await nodeNow(id)).conditions.some(({ type }: { type: string }) => type === "agent.healthy") ? true : undefined,
  );
  return { agent, has };
}
const skuBecomes = (id: NodeId, status: string) =>
  until(`hardware.sku to be ${status}`, async () => {
    const node = await nodeNow(id);
    return node.conditions.find(({ type }: { type: string }) => type === "hardware.sku")?.status === status
      ? node
      : undefined;
  });

it("an external host comes into service when its inventory is as its SKU says, and a new attempt looks again", async () => {
  const host = { hostname: "ext-1", site_id: siteId, sku_id: skuId, region_code: "r1", provisioner: "foreman" };
  const attemptOf = async (id: string) => (await api.ask("GET", `${ADMIN}/external-attempts/${id}`)).body;
  const provisioned = async () => {
    const { attempt, bootstrap_command } = await make("/external-attempts", host);
    const running = await runs(attempt.node_id, bootstrap_command);
    await make(`/external-attempts/${attempt.id}/complete`, {}, 202);
    return { attempt, ...running };
  };
  const { attempt, agent, has } = await provisioned();
  expect(await attemptOf(attempt.id)).toMatchObject({
    status: "verifying",
    waiting_for: [expect.stringMatching(/^hardware\.sku was never reported.*when the agent connects/)],
  });
  has(0, { gpus_counted: true });
  await skuBecomes(attempt.node_id, "False");
  expect(await attemptOf(attempt.id), "without GPUs").toMatchObject({ status: "verifying" });
  has(7);
  await until("seven GPUs to be told", async () =>
    (await attemptOf(attempt.id)).waiting_for[0]?.includes("hardware.sku") ? true : undefined,
  );
  expect((await nodeNow(attempt.node_id)).status).toBe("enrolling");
  has(8, { gpus_counted: true });
  await until("the attempt to be completed", async () =>
    (await attemptOf(attempt.id)).status === "completed" ? true : undefined,
  );
  expect((await nodeNow(attempt.node_id)).status).toBe("active");
  agent.cut();

  // What the former system had says nothing about the host after the next provisioning.
  const second = await provisioned();
  expect(await attemptOf(second.attempt.id)).toMatchObject({
    status: "verifying",
    waiting_for: [expect.stringMatching(/^hardware\.sku/)],
  });
  second.has(0, { gpus_counted: true });
  await skuBecomes(second.attempt.node_id, "False");
  expect((await nodeNow(second.attempt.node_id)).status).toBe("enrolling");
  second.agent.cut();
});

it("a host of manual mode takes no tenant before its inventory, nor without its GPUs", async () => {
  const body = { hostname: "manual-1", site_id: siteId, sku_id: skuId, region_code: "r1", onboarding_mode: "manual" };
  const { node_id: id, bootstrap_command } = await make("/nodes", body);
  const { agent, has } = await runs(id, bootstrap_command);
  await until("the node to be active", async () => ((await nodeNow(id)).status === "active" ? true : undefined));
  const reasons = async () => (await nodeNow(id)).unschedulable_reasons.join("\n");
  expect(await reasons()).toContain("hardware.sku was never reported");
  has(0, { gpus_counted: true });
  await skuBecomes(id, "False");
  expect(await reasons()).toContain("hardware.sku is False: OtherHardware");
  has(8);
  await skuBecomes(id, "True");
  expect(await reasons()).not.toContain("hardware.sku");
  agent.cut();
});
