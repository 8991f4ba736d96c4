import { MAAS_STATUS } from "../../shared/maas-status.ts";
import { addSchedulableNode, onboardedWith, SSH_KEY } from "./allocatable-node.ts";
import type { ApiHarness } from "./api-harness.ts";
import { insertSite } from "./site.ts";
import { addMachine } from "./site-nodes.ts";

const HOSTNAME = "c12u41";

/** Makes the instance of docs/instances.md before its first command, and ends the power action of the command before, as time would do. */
export async function prepareInstance(api: ApiHarness, command: string): Promise<void> {
  if (command.includes("create-allocation-batch")) await addFreeNodes(api);
  if (!command.includes(HOSTNAME)) return;
  const { database, pool } = { database: api.database.database, pool: api.database.database.pool };
  await pool.query("update power_actions set state = 'done', finished_at = now() where state = 'running'");
  const { rowCount } = await pool.query("select 1 from allocations where hostname = $1", [HOSTNAME]);
  if (rowCount !== 0) return;
  const { nodeId, siteId } = await database.inTx(async (tx) => {
    const siteId = await insertSite(tx, { name: "of-the-instance", apiBaseUrl: "http://instance.invalid/MAAS" });
    const id = await addSchedulableNode(tx, { siteId, hostname: HOSTNAME, sku: "h100" });
    await addMachine(tx, { siteId, hostname: HOSTNAME, nodeId: id }, { status: MAAS_STATUS.deployed });
    return { nodeId: id, siteId };
  });
  await api.ask("POST", `/api/v1/admin/maas-sites/${siteId}/profiles`, { name: "gpu" });
  const { rows } = await pool.query("select id from maas_site_profiles where site_id = $1", [siteId]);
  await database.inTx((tx) => onboardedWith(tx, { nodeId, siteId, profileId: rows[0].id, hostname: HOSTNAME }));
  const wanted = { node_id: nodeId, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY] };
  await api.ask("POST", "/api/v1/admin/allocations", wanted);
  await pool.query("update allocations set status = 'active', active_at = now() where hostname = $1", [HOSTNAME]);
}

/** Adds the free nodes of the site `dc1` that a batch of allocations takes. */
async function addFreeNodes({ database: { database } }: ApiHarness): Promise<void> {
  const { rows } = await database.pool.query("select id from maas_sites where name = 'dc1'");
  for (const hostname of ["c13u1", "c13u2", "c13u3", "c13u4"])
    await database.inTx((tx) => addSchedulableNode(tx, { siteId: rows[0].id, hostname, sku: "h100" }));
}
