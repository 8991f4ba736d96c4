import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sql } from "../../hub/db/orm.ts";
import { keepInventory } from "../../hub/db/queries/node-inventories.ts";
import { keepUid, reserveUid } from "../../hub/db/queries/tenant-uids.ts";
import { nodeMaasState } from "../../hub/db/schema/index.ts";
import { NodeId, SiteId } from "../../shared/ids.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { inventoryOf } from "../support/running-host.ts";

/** No two tenants of one machine get one uid, whichever system and node of the machine they used. */
const FOLDER = new URL("../../hub/db/migrations/", import.meta.url);
const FILE = readdirSync(FOLDER).find((name) => name.endsWith("_tenant_uids.sql")) ?? "none";
let test: TestDatabase;
const site = SiteId.parse(randomUUID());
beforeAll(async () => {
  test = await createTestDatabase();
  await test.database.pool.query(
    "insert into maas_sites (id, name, region_code, api_base_url, pxe_iface, pxe_vlan_vid, node_pxe_iface, deploy_user, deploy_ssh_iface, upstream_dns_servers) values ($1, 's', 'r', 'http://maas.test', 'e', 0, 'e', 'u', 'e', '{}')",
    [site],
  );
});
afterAll(() => test?.drop());

let nodes = 0;
async function node(machine: string | null = null): Promise<NodeId> {
  const id = NodeId.parse(randomUUID());
  nodes += 1;
  await test.database.pool.query(
    `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, onboarding_mode, status)
     values ($1, $2, $3, 'sku', 0, 'r', 'maas', 'active')`,
    [id, `h-${id}`, site],
  );
  if (machine !== null)
    await test.database.db
      .insert(nodeMaasState)
      .values({ nodeId: id, siteId: site, maasSystemId: machine, ipmiIp: `10.0.0.${nodes}` });
  return id;
}
const reserve = (id: NodeId) => test.database.inTx((tx) => reserveUid(tx, id));
const keep = (id: NodeId, uid: number) => test.database.inTx((tx) => keepUid(tx, id, uid));
const reimage = (id: NodeId) =>
  test.database.db.execute(sql`update nodes set generation = generation + 1 where id = ${id}`);

it("the hub names the lowest uid only to a system that does not know the machine's earlier uids", async () => {
  const id = await node();
  expect(await reserve(id)).toBeNull();
  await keep(id, 20_000);
  expect(await reserve(id)).toBeNull();
  // The image of the site has the next ten uids.
  await keep(id, 20_011);
  await reimage(id);
  expect(await reserve(id)).toBe(20_012);
  // The agent has made no account by the order, so it does not know the earlier uids yet.
  expect(await reserve(id)).toBe(20_013);
  await keep(id, 20_013);
  expect(await reserve(id)).toBeNull();
});

it("the next node of the same machine goes on, by the machine in MAAS or by the UUID of its system", async () => {
  const first = await node("abc");
  const tell = (id: NodeId, uuid: string) =>
    keepInventory(test.database.db, id, inventoryOf({ bootId: "b", uuid, macs: [] }));
  await tell(first, "4C4C-1");
  await reserve(first);
  await keep(first, 20_500);
  await test.database.db.delete(nodeMaasState);
  expect(await reserve(await node("abc"))).toBe(20_501);
  const enlistedAgain = await node("xyz");
  await tell(enlistedAgain, "4c4c-1");
  expect(await reserve(enlistedAgain)).toBe(20_501);
  expect(await reserve(await node("other"))).toBeNull();
});

it("a UUID that many hosts report joins no machines, so that they do not use up one another's uids", async () => {
  const hosts = [await node("one-of-many"), await node("two-of-many"), await node("three-of-many")] as const;
  for (const id of hosts)
    await keepInventory(test.database.db, id, inventoryOf({ bootId: "b", uuid: "0300-02", macs: [] }));
  const [own, other] = hosts;
  for (const id of [own, other]) expect(await reserve(id)).toBeNull();
  await keep(other, 20_900);
  await reimage(own);
  expect(await reserve(own)).toBe(20_001);
});

it("a host with a false report uses up only some of its uids, and all used uids stop the next account", async () => {
  const id = await node();
  await reserve(id);
  for (const uid of [0, 19_999, 60_000, 2_147_483_647]) await keep(id, uid);
  await reimage(id);
  expect(await reserve(id)).toBe(20_001);
  await keep(id, 59_999);
  await reimage(id);
  expect(await reserve(id)).toBe(21_002);
  await test.database.db.execute(sql`update tenant_uids set highest_uid = 59999 where machine = ${`node:${id}`}`);
  expect(await reserve(id)).toBe(60_000);
  expect(await reserve(id)).toBe(60_000);
});

it("the migration takes the uids of earlier allocations, and at least one for each allocation", async () => {
  const [one, two] = [await node("m-one"), await node("m-two")];
  const allocation = async (of: NodeId, generation: number, uid: unknown) => {
    const [task, id] = [randomUUID(), randomUUID()];
    const { pool } = test.database;
    if (uid !== null)
      await pool.query(
        `insert into tasks (id, node_id, type, input, state, idempotency_key, deadline, result)
         values ($1, $2, 'allocation.grant_user', '{}', 'succeeded', $4, now(), $3)`,
        [task, of, { uid, steps: [] }, `grant/${task}`],
      );
    await pool.query(
      `insert into allocations (id, node_id, site_id, hostname, generation, tenant, login_user, ssh_keys, grants_root, labels, status, grant_task_id, created_by, ended_at)
       values ($1, $2, $3, 'h', $4, 't', 'u', '{}', false, '{}', 'ended', $5, 'ann', now())`,
      [id, of, site, generation, task],
    );
  };
  await allocation(one, 0, 20_007);
  await allocation(two, 0, null);
  await allocation(two, 0, "x");
  await allocation(two, 1, 20_000);
  const text = readFileSync(new URL(FILE, FOLDER), "utf8");
  await test.database.pool.query("truncate tenant_uids");
  await test.database.pool.query(text.slice(text.indexOf("INSERT INTO")));
  const { rows } = await test.database.db.execute(
    sql`select machine, highest_uid, made_by from tenant_uids order by highest_uid desc, machine`,
  );
  expect(rows).toEqual([
    { machine: "maas:m-one", highest_uid: 20_007, made_by: `${one}/0` },
    { machine: `node:${one}`, highest_uid: 20_007, made_by: `${one}/0` },
    { machine: "maas:m-two", highest_uid: 20_002, made_by: "" },
    { machine: `node:${two}`, highest_uid: 20_002, made_by: "" },
  ]);
});
