/** What a repair team sees of the machine, and a request for repair that a client of NICo's templates sends. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { keepInventory } from "../../../hub/db/queries/node-inventories.ts";
import { maasMachines } from "../../../hub/db/schema/index.ts";
import { ISSUE, RepairWorld } from "../../support/repair-world.ts";
import { inventoryOf } from "../../support/running-host.ts";

let world: RepairWorld;
beforeAll(async () => {
  world = await RepairWorld.start();
});
afterAll(() => world?.api.close());

const ofMaas = {
  tags: [],
  pool: "default",
  zone: "default",
  macs: [],
  hardware_uuid: null,
  architecture: "amd64/generic",
};
const DETAILS = {
  ...ofMaas,
  serial: "SYS-1",
  board_serial: "BRD-1",
  chassis_serial: "CHS-1",
  firmware_version: "2.19",
};

it("a repair system finds the machine of a repair in the data centre, and sees what is wrong with it", async () => {
  const nodeId = await world.newNode();
  const { id } = await world.must("/repairs", { node_id: nodeId, machine_health_issue: ISSUE, request: true });
  expect((await world.get(`/repairs/${id}`, world.team)).body.machine).toMatchObject({
    ...{ location: { room: null, rack: null, unit: null }, serial: null, maas_system_id: null, gpus: [], faults: [] },
  });
  await world.query(
    "update nodes set room = 'A', rack = 'r7', unit = 12, asset_tag = 'INV-1', host = '10.0.0.9' where id = $1",
    [nodeId],
  );
  await world.query(
    "insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip) values ($1, $2, 'abc123', '10.1.0.9')",
    [nodeId, world.manual],
  );
  const machine = {
    ...{ siteId: world.manual, systemId: "abc123", hostname: "h", status: 6, statusName: "Deployed", powerState: "on" },
    ...{ statusMessage: "", errorDescription: "", owner: null, locked: false, ipAddresses: [], details: DETAILS },
  };
  await world.api.database.database.db.insert(maasMachines).values(machine as never);
  const inventory = inventoryOf({ bootId: "b", uuid: "", macs: [], gpus: 1 });
  const gpus = inventory.gpus.map((gpu) => ({ ...gpu, bus: "0000:05:00.0", serial: "GPU-1" }));
  const disks = [{ name: "/dev/nvme0n1", model: "PM9A3", serial: "DSK-1", bytes: 1e12, kind: "NVMe" }];
  await keepInventory(world.api.database.database.db, nodeId, { ...inventory, gpus, disks });
  await world.query(
    `insert into node_conditions (node_id, type, status, reason, message, generation, source, observed_at)
     select $1, type, 'False', 'Broken', 'it is broken', generation, 'agent', now()
     from (values ('health.gpu', 0), ('health.clock', 0), ('cloud_init.done', 0), ('health.disks', -1)) v (type, generation)`,
    [nodeId],
  );
  const { body, status } = await world.get(`/repairs/${id}`, world.team);
  expect(status).toBe(200);
  expect(body.machine).toMatchObject({
    ...{ node_status: "active", location: { room: "A", rack: "r7", unit: 12 }, asset_tag: "INV-1", host: "10.0.0.9" },
    ...{
      maas_system_id: "abc123",
      serial: "SYS-1",
      board_serial: "BRD-1",
      chassis_serial: "CHS-1",
      firmware_version: "2.19",
    },
    gpus: [{ model: "MI300X", bus: "0000:05:00.0", serial: "GPU-1" }],
    disks: [{ name: "/dev/nvme0n1", model: "PM9A3", serial: "DSK-1" }],
  });
  const faults = body.machine.faults.map(({ type, class: kind }: { type: string; class: string }) => `${type} ${kind}`);
  expect(faults, "no information, and nothing of an earlier generation").toEqual([
    "health.clock warning",
    "health.gpu barring",
  ]);
  expect((await world.get(`/nodes/${nodeId}`, world.team)).status, "the node itself").toBe(403);
  await world.query("update node_conditions set status = 'True' where node_id = $1 and type = 'health.gpu'", [nodeId]);
  await world.repairAndClose(nodeId, id);
  const ended = (await world.get(`/repairs/${id}`, world.team)).body;
  expect([ended.state, ended.machine], "after the end the machine is nothing of the team's").toEqual(["closed", null]);
});

it("the template RequestRepair opens a repair that a repair system can claim", async () => {
  const nodeId = await world.newNode();
  const overrides = `/nodes/${nodeId}/health-overrides`;
  const request = { template: "RequestRepair", message: "GPU 3 fell off the bus" };
  expect(await world.refused(overrides, { ...request, expires_in_minutes: 5 })).toMatch(
    /^400 validation_failed: .*by the verbs/,
  );
  const alert = { id: "RequestRepair", message: "GPU 3", classifications: ["PreventAllocations"] };
  const given = { source: "repair-request", alerts: [alert] };
  for (const [wrong, why] of [
    [{ ...request, tenant_message: "t" }, /tenant_message does not go/],
    [{ ...given, mode: "replace" }, /mode is merge/],
    [{ ...given, alerts: [alert, { ...alert, id: "b" }] }, /alerts has one alert/],
    [
      { ...given, alerts: [{ ...alert, classifications: ["PreventInstanceDeletion"] }] },
      /classifications are PreventAllocations/,
    ],
  ] as const)
    expect(await world.refused(overrides, wrong)).toMatch(why);
  expect(await world.repairOf(nodeId)).toBeNull();
  const health = await world.must(overrides, request);
  expect(health.health_overrides.map(({ source }: { source: string }) => source)).toEqual([
    "repair-request",
    "tenant-reported-issue",
  ]);
  const repair = await world.repairOf(nodeId);
  expect(repair).toMatchObject({
    state: "requested",
    mode: "full",
    issue: { category: "Other", summary: request.message },
  });
  expect(await world.verb(repair.id, "claim", {}, world.team)).toMatchObject({ state: "claimed" });

  const raw = await world.newNode();
  await world.must(`/nodes/${raw}/health-overrides`, given);
  expect(await world.repairOf(raw)).toMatchObject({ state: "requested", issue: { summary: "GPU 3" } });
  const silent = await world.newNode();
  await world.must(`/nodes/${silent}/health-overrides`, {
    source: "repair-request",
    mode: "merge",
    alerts: [{ ...alert, message: "m" }],
  });
  const used = await world.newNode();
  await world.allocate(used);
  expect(await world.refused(`/nodes/${used}/health-overrides`, request)).toMatch(
    /^409 conflict: .*takes no full repair/,
  );
  expect(await world.marks(used)).toEqual([]);
});
