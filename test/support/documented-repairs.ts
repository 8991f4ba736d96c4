import { makeSchedulable, SSH_KEY } from "./allocatable-node.ts";
import type { ApiHarness } from "./api-harness.ts";
import { endCleaning } from "./end-cleaning.ts";

/** The nodes of docs/repair.md, by the first command about each of them, and whether a tenant has the node. */
const NODES = [
  { hostname: "c11u41", first: "open-repair", hasTenant: false },
  { hostname: "c11u42", first: "release-allocation c11u42", hasTenant: true },
  { hostname: "c11u43", first: "open-online-repair", hasTenant: true },
] as const;

/** The override that a restore of the database sets on a node. */
export const RESTORE_OVERRIDE =
  "insert into node_health_overrides (node_id, source, reason, set_by) values ($1, 'restore', 'r', 'restore') on conflict do nothing";

/** Carries out what docs/repair.md says in words before a command: a node with or without a tenant, and the end of a cleaning. */
export async function prepareRepair(api: ApiHarness, command: string): Promise<void> {
  const { pool, inTx } = api.database.database;
  if (command.includes("validate-repair")) {
    const { rows } = await pool.query("select id from nodes where hostname = 'c11u41'");
    await endCleaning(pool, rows[0].id);
  }
  const node = NODES.find(({ first }) => command.includes(first));
  if (node === undefined) return;
  const { hostname, hasTenant } = node;
  const host = { hostname, sku_id: "h100", region_code: "eu-1", onboarding_mode: "manual" };
  const { body } = await api.ask("POST", "/api/v1/admin/nodes", host);
  await pool.query("update nodes set status = 'active' where id = $1", [body.node_id]);
  await inTx((tx) => makeSchedulable(tx, body.node_id));
  if (!hasTenant) return;
  const tenant = { node_id: body.node_id, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY] };
  await api.ask("POST", "/api/v1/admin/allocations", tenant);
  await pool.query("update allocations set status = 'active' where node_id = $1", [body.node_id]);
}
