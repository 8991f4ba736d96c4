import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sql } from "../../hub/db/orm.ts";
import { listHealthOverrides } from "../../hub/db/queries/node-health-overrides.ts";
import { NodeId, SiteId } from "../../shared/ids.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

/** Tests the migration that gives a health override to each node whose erase a person waived before Muster had health overrides. */
const FOLDER = new URL("../../hub/db/migrations/", import.meta.url);
const FILE = readdirSync(FOLDER).find((name) => name.endsWith("_waived_erases.sql")) ?? "none";
let test: TestDatabase;
const site = SiteId.parse(randomUUID());
beforeAll(async () => {
  test = await createTestDatabase();
  const { pool } = test.database;
  await pool.query(
    "insert into maas_sites (id, name, region_code, api_base_url, pxe_iface, pxe_vlan_vid, node_pxe_iface, deploy_user, deploy_ssh_iface, upstream_dns_servers) values ($1, 's', 'r', 'http://maas.test', 'e', 0, 'e', 'u', 'e', '{}')",
    [site],
  );
});
afterAll(() => test?.drop());

let age = 1_000;
async function node(machine: string, status = "active"): Promise<NodeId> {
  const id = NodeId.parse(randomUUID());
  const { pool } = test.database;
  await pool.query(
    `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, onboarding_mode, status)
     values ($1, $2, $3, 'sku', 0, 'r', 'maas', $4)`,
    [id, `h-${id}`, site, status],
  );
  if (status !== "deleted")
    await pool.query(
      "insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip) values ($1, $2, $3, $4)",
      [id, site, machine, `10.0.0.${age % 250}`],
    );
  return id;
}
async function operation(of: NodeId, machine: string, erase: string, state: object): Promise<string> {
  const id = randomUUID();
  age -= 1;
  const { pool } = test.database;
  await pool.query(
    `insert into workflows (id, kind, status, site_id, stage, completed_at, input, state, requested_by)
     values ($1, 'reimage', 'completed', $2, 'enable_node', now(), $3, $4, 'ann')`,
    [id, site, { erase }, state],
  );
  await pool.query(
    `insert into node_decommissions (decommission_id, node_id, site_id, hostname, maas_system_id, mode, reason, prior_status, created_at)
     values ($1, $2, $3, 'h', $4, 'reimage', 'r', 'active', now() - make_interval(mins => $5))`,
    [id, of, site, machine, age],
  );
  return id;
}
const WAIVED = { erase_waived: 1, erase_waived_by: "ann" };

it("bars the node that has the machine now, unless a later erase is proven or a hub has set the override already", async () => {
  const barred = await node("plain");
  const first = await operation(barred, "plain", "secure", WAIVED);
  const weaker = await node("weaker");
  await operation(weaker, "weaker", "secure", WAIVED);
  await operation(weaker, "weaker", "quick", { erase_reported: 2 });
  const erased = await node("erased");
  await operation(erased, "erased", "secure", WAIVED);
  await operation(erased, "erased", "secure", { erase_reported: 2 });
  const proven = await node("proven");
  await operation(proven, "proven", "quick", { ...WAIVED, erase_reported: 1 });
  const earlier = await node("earlier");
  await operation(earlier, "earlier", "quick", { erase_reported: 0 });
  await operation(earlier, "earlier", "quick", { ...WAIVED, erase_waived_by: null, erase_reported: null });
  const gone = await node("moved", "deleted");
  await operation(gone, "moved", "quick", WAIVED);
  const heir = await node("moved");
  const unused = await node("unused", "deleted");
  await operation(unused, "unused", "quick", WAIVED);
  const never = await node("never");
  await operation(never, "never", "quick", { machine_free: 1, erase_waived: null });
  const removed = await node("removed");
  const told = await operation(removed, "removed", "quick", WAIVED);
  const { db, pool } = test.database;
  await pool.query(
    "insert into node_events (node_id, type, owner, message) values ($1, 'health_override_set', 'a', $2)",
    [removed, `disk-erase: not erased in reimage ${told}`],
  );
  const migration = readFileSync(new URL(FILE, FOLDER), "utf8");
  // A second run of the migration changes nothing, because the node's history contains each override that the first run set.
  for (const _run of [1, 2]) await db.execute(sql.raw(migration));
  const all = [barred, weaker, erased, proven, earlier, gone, heir, unused, never, removed];
  const found = await listHealthOverrides(db, all);
  expect(new Set(found.map(({ nodeId }) => nodeId))).toEqual(new Set([barred, weaker, earlier, heir, unused]));
  expect(found.find(({ nodeId }) => nodeId === barred)).toMatchObject({
    source: "disk-erase",
    target: "plain",
    setBy: "operator:ann",
    reason: `MAAS did not show that the disks were erased in reimage ${first}, and a person forced it`,
  });
  expect(found.find(({ nodeId }) => nodeId === earlier)?.setBy).toBe("operator:unknown");
  const { rows } = await pool.query("select node_id from node_events where owner like 'operator:%'");
  expect(rows).toHaveLength(5);
});
