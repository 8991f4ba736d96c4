import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { domainEvents } from "../../../hub/db/schema/index.ts";
import { setHealthOverride } from "../../../hub/node/health-override.ts";
import { NodeId } from "../../../shared/ids.ts";
import type { Machine } from "../../fakes/maas/state/model.ts";
import { AdoptionWorld } from "../../support/adoption-world.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";
import { enrollHost, inventoryOf, macOf, tellHealthy, tokenIn } from "../../support/running-host.ts";
import { until } from "../../support/until.ts";

const NODES = "/api/v1/admin/nodes";
let world: AdoptionWorld;
let rig: GatewayRig;
beforeAll(async () => {
  world = await AdoptionWorld.start();
  rig = await GatewayRig.start({}, world.api.database);
});
afterAll(async () => {
  await rig?.listener.close();
  await world?.close();
});

/** Makes a node of manual mode whose agent runs on the host of the machine, and has reported. */
async function manual(hostname: string, { siteId = world.siteId as string | null, gpus = 8 } = {}) {
  const machine = world.deployed(hostname);
  await world.poll();
  const body = { onboarding_mode: "manual", hostname, sku_id: world.skuId, region_code: "r1", site_id: siteId };
  const created = (await world.api.ask("POST", NODES, body)).body;
  const id = NodeId.parse(created.node_id);
  const bootId = randomUUID();
  const token = tokenIn(created.bootstrap_command);
  const { agent } = await enrollHost(rig, { id, token, macs: [macOf(machine)], bootId });
  if (agent === null) throw new Error("not enrolled");
  const inventory = inventoryOf({ bootId, uuid: machine.hardwareUuid ?? "", macs: [macOf(machine)], gpus });
  agent.send({ type: "inventory", inventory });
  tellHealthy(agent, (await world.node(id)).generation, bootId);
  await until("the node to be in service with its inventory", async () => {
    const node = await world.node(id);
    return node.status === "active" && node.inventory !== null ? true : undefined;
  });
  // Only an adopted node has to prove that its host is a machine.
  const types = (await world.node(id)).conditions.map(({ type }: { type: string }) => type);
  expect(types).not.toContain("adoption.identity");
  return { id, machine, agent };
}
const bind = (id: NodeId, machine: Machine, more: object = {}) =>
  world.api.ask("POST", `${NODES}/${id}/bind-machine`, { maas_system_id: machine.systemId, ...more });
const unbind = (id: NodeId) => world.api.ask("POST", `${NODES}/${id}/unbind-machine`, { reason: "a test" });
const typesOf = async (id: NodeId) =>
  (
    await rig.db
      .select()
      .from(domainEvents)
      .where(eq(domainEvents.subject, `nodes/${id}`))
  ).map(({ type }) => type);

describe("a node of manual mode", () => {
  it("is bound to its machine after a plan, is watched from then on, and can be unbound again", async () => {
    const { id, machine, agent } = await manual("bind-1");
    const { generation } = await world.node(id);
    const planned = await bind(id, machine, { plan: true });
    expect(planned.body).toMatchObject({ plan: true, outcome: "bound", gpus: { status: "True" }, refusals: [] });
    expect(await world.node(id)).toMatchObject({ onboarding_mode: "manual", maas_system_id: null });

    expect((await bind(id, machine)).body).toMatchObject({ plan: false, outcome: "bound", differences: [] });
    expect(await world.node(id)).toMatchObject({
      status: "active",
      generation,
      onboarding_mode: "adopted",
      maas_system_id: machine.systemId,
      maas: { status: "Deployed" },
      adoption: { adopted_by: "admin", was_manual: true, past_unknown: false, profile_id: world.profileId },
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: "adoption.identity", status: "True", reason: "SameHost" }),
        expect.objectContaining({ type: "adoption.gpus", status: "True" }),
      ]),
    });
    expect((await bind(id, machine)).body).toMatchObject({ outcome: "exists" });
    expect(world.writesToMaas()).toEqual({});

    world.change(machine, (one) => void Object.assign(one, { powerState: "off" }));
    await world.poll();
    expect((await world.node(id)).maas).toMatchObject({ power_state: "off" });

    expect((await unbind(id)).body).toEqual({
      node_id: id,
      onboarding_mode: "manual",
      maas_system_id: machine.systemId,
    });
    const free = await world.node(id);
    expect(free).toMatchObject({ status: "active", onboarding_mode: "manual", maas_system_id: null, adoption: null });
    expect(free.conditions.map(({ type }: { type: string }) => type)).not.toContain("adoption.identity");
    expect((await unbind(id)).problem).toMatchObject({ code: "conflict" });
    const told = (await typesOf(id)).filter((type) => type.startsWith("node.machine."));
    expect(told).toEqual(["node.machine.bound", "node.machine.unbound"]);
    const { items } = (await world.api.ask("GET", `/api/v1/admin/audit-logs?object_kind=nodes&object_id=${id}`)).body;
    const actions = items.filter(({ outcome }: { outcome: string }) => outcome === "done");
    expect(actions.map(({ action }: { action: string }) => action)).toEqual(
      expect.arrayContaining(["bindNodeMachine", "unbindNodeMachine"]),
    );
    const again = await bind(id, machine, { accept_differences: ["powered_off"] });
    expect(again.body).toMatchObject({ outcome: "bound", differences: [{ kind: "powered_off" }] });
    agent.cut();
  });

  it("without a site gets the site of its machine", async () => {
    const { id, machine, agent } = await manual("bind-2", { siteId: null });
    expect((await bind(id, machine)).problem).toMatchObject({ errors: [{ pointer: "/site_id" }] });
    expect((await bind(id, machine, { site_id: world.siteId })).body).toMatchObject({ outcome: "bound" });
    expect(await world.node(id)).toMatchObject({ site_id: world.siteId, maas_system_id: machine.systemId });
    agent.cut();
  });

  it("is not bound to a machine that its host is not, nor to a machine with a node, and says why", async () => {
    const one = await manual("bind-3");
    const other = world.deployed("bind-4");
    await world.poll();
    const refused = await bind(one.id, other);
    expect(refused.problem).toMatchObject({ code: "conflict", detail: expect.stringContaining("was not bound") });
    const planned = await bind(one.id, other, { plan: true });
    expect(planned.body.refusals.map(({ code }: { code: string }) => code)).toEqual(["hostname_differs", "other_host"]);
    expect((await bind(one.id, { ...other, systemId: "nowhere" })).problem.detail).toContain("has seen no machine");
    const adopted = await world.adopted(other);
    expect((await bind(one.id, other, { plan: true })).body.refusals).toMatchObject([
      { code: "machine_taken", message: expect.stringContaining(adopted) },
      { code: "hostname_differs" },
      { code: "other_host" },
    ]);
    expect((await bind(NodeId.parse(adopted), one.machine)).problem.detail).toContain("is not of manual mode");
    expect((await unbind(NodeId.parse(adopted))).problem.detail).toContain("Remove the node instead");
    expect(await world.node(one.id)).toMatchObject({ onboarding_mode: "manual", maas_system_id: null });
    one.agent.cut();
  });

  it("is neither bound nor unbound while an operation holds it, and not unbound in quarantine or after a reimage", async () => {
    const { id, machine, agent } = await manual("bind-7");
    const { pool } = world.api.database.database;
    const workflow = randomUUID();
    await pool.query(
      "insert into workflows (id, kind, status, stage, input, state, requested_by) values ($1, 'decommission:drain', 'running', 's', '{}', '{}', 'ann')",
      [workflow],
    );
    const hold = () =>
      pool.query("insert into workflow_subjects (subject, workflow_id) values ($1, $2)", [`node:${id}`, workflow]);
    const letGo = () => pool.query("delete from workflow_subjects where workflow_id = $1", [workflow]);
    await hold();
    expect((await bind(id, machine)).problem).toMatchObject({ detail: expect.stringContaining("cannot be bound") });
    await letGo();
    expect((await bind(id, machine, { site_id: randomUUID() })).problem).toMatchObject({
      detail: expect.stringContaining("belongs to another site"),
    });
    expect((await bind(id, machine)).body).toMatchObject({ outcome: "bound" });
    await hold();
    expect((await unbind(id)).problem).toMatchObject({ detail: expect.stringContaining("cannot be unbound") });
    await letGo();
    const quarantine = (verb: string) => world.api.ask("POST", `${NODES}/${id}/${verb}`, { reason: "a test" });
    await quarantine("quarantine");
    expect((await unbind(id)).problem).toMatchObject({ detail: expect.stringContaining("is quarantined") });
    await quarantine("lift-quarantine");
    await pool.query(
      `insert into node_decommissions (decommission_id, node_id, site_id, hostname, mode, reason, prior_status, released_generation)
         values ($1, $2, $3, 'bind-7', 'reimage', 'first', 'active', 1)`,
      [workflow, id, world.siteId],
    );
    expect((await unbind(id)).problem).toMatchObject({ detail: expect.stringContaining("that Muster deployed") });
    expect(await world.node(id)).toMatchObject({ onboarding_mode: "adopted", maas_system_id: machine.systemId });
    agent.cut();
  });

  it("gets the health override that an earlier node left for its machine, and the BMC address of MAAS in its one spelling", async () => {
    const { id, machine, agent } = await manual("bind-8");
    world.change(machine, (one) => void Object.assign(one.powerParameters, { power_address: "https://10.91.0.8/" }));
    const { inTx, pool } = world.api.database.database;
    const former = NodeId.parse(randomUUID());
    await pool.query(
      `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
         values ($1, 'former', $2, $3, 8, 'r1', 'deleted', 'maas')`,
      [former, world.siteId, world.skuId],
    );
    const left = { nodeId: former, source: "disk-erase", target: machine.systemId, reason: "not erased", setBy: "ann" };
    await inTx((tx) => setHealthOverride(tx, left));
    expect((await bind(id, machine)).body).toMatchObject({ outcome: "bound" });
    expect((await world.node(id)).health_overrides).toMatchObject([{ source: "disk-erase" }]);
    const { rows } = await pool.query("select ipmi_ip from node_maas_state where node_id = $1", [id]);
    expect(rows).toEqual([{ ipmi_ip: "10.91.0.8" }]);
    agent.cut();
  });

  it("with other GPUs than its SKU is bound only if the request accepts that", async () => {
    const { id, machine, agent } = await manual("bind-5", { gpus: 7 });
    expect((await bind(id, machine)).problem.detail).toContain("other_gpus");
    const bound = await bind(id, machine, { accept_differences: ["other_gpus"] });
    expect(bound.body).toMatchObject({ outcome: "bound", gpus: { status: "False", reason: "OtherGpus" } });
    agent.cut();
  });

  it("is bound once by two requests at once, and an adoption of its machine at the same time adopts nothing", async () => {
    const { id, machine, agent } = await manual("bind-6");
    const [first, second, adoption] = await Promise.all([
      bind(id, machine),
      bind(id, machine),
      world.adopt({ system_ids: [machine.systemId] }),
    ]);
    expect([first.body.outcome, second.body.outcome].toSorted()).toEqual(["bound", "exists"]);
    expect(adoption.body).toMatchObject({ adopted: 0 });
    agent.cut();
  });
});
