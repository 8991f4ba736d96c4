import type { DriftDetails } from "../../shared/drift.ts";
import { NodeId, SiteId } from "../../shared/ids.ts";
import { ONBOARDING_STAGES } from "../../shared/workflow-status.ts";
import { addSchedulableNode, SSH_KEY } from "./allocatable-node.ts";
import { type ApiHarness, seedApi } from "./api-harness.ts";
import { addActiveNode } from "./site-nodes.ts";
import { seedTroubledFleet } from "./troubled-fleet.ts";
import { storeUnsignedRecord } from "./unsigned-record.ts";
import { addWaitingApproval } from "./waiting-approval.ts";

/** Fills the database with objects of every kind at several sites, so that each list of the API has at least two items. */
export async function seedFullFleet(api: ApiHarness): Promise<void> {
  await seedTroubledFleet(api.database.database.pool, 3);
  await mend(api);
  await addToLists(api);
}

const DRIFT: DriftDetails = {
  rule: "hardware_failure",
  severity: "high",
  action: "none",
  maas_status: "Broken",
  maas_status_code: 8,
  expected: "Deployed",
  message: "Its machine is broken",
  detected_at: "2026-01-01T00:00:00.000Z",
  held_back: null,
};

/** Fills the fields that the SQL of the test fleet leaves empty, with what the API would have written. */
async function mend(api: ApiHarness): Promise<void> {
  const { pool } = api.database.database;
  const { rows } = await pool.query<{ id: string }>(
    "update maas_sites set upstream_dns_servers = '{10.0.0.53}' returning id",
  );
  for (const { id } of rows) {
    const profile = await api.ask("POST", `/api/v1/admin/maas-sites/${id}/profiles`, { name: "default" });
    await pool.query("update maas_sites set default_profile_id = $2 where id = $1", [id, profile.body.id]);
  }
  await pool.query("update workflows set stage = $1", [ONBOARDING_STAGES[0]]);
  await pool.query("update node_maas_state set drift_details = $1", [JSON.stringify(DRIFT)]);
}

/** Adds items until each list of the API has at least two, because the test fleet has fewer in some lists. */
async function addToLists(api: ApiHarness): Promise<void> {
  const { pool } = api.database.database;
  const post: Post = async (path, body) => {
    const { status, problem } = await api.ask("POST", `/api/v1/admin${path}`, body);
    if (status >= 300) throw new Error(`${path} ${JSON.stringify(problem)}`);
  };
  const { siteId, profileId, skuId } = await seedApi(api, "dc9");
  await seedApi(api, "dc10");
  await post(`/maas-sites/${siteId}/profiles`, { name: "second" });
  const row = (rail: number) => ({
    hostname: "c07u41",
    interface: `rail${rail}`,
    ipv4_cidr: `172.30.0.${rail * 2 + 1}/31`,
  });
  await post(`/maas-sites/${siteId}/roce-assignments`, { items: [row(0), row(1)] });
  await pool.query(
    "insert into maas_power_credential_overrides (site_id, selector_type, selector_value, vault_path) select $1, 'hostname', 'h' || n, 'kv/more/' || n from generate_series(1, 2) n",
    [siteId],
  );
  await pool.query(
    `insert into page_sessions (id_sha256, subject, name, address, user_agent, expires_at)
      select 's' || n, 'ann', 'oidc:ann', '10.0.0.1', 'a browser', now() + interval '1 hour' from generate_series(1, 2) n`,
  );
  for (const n of [1, 2]) {
    await api.database.database.inTx((tx) => addWaitingApproval(tx, SiteId.parse(siteId)));
    await post("/tokens", { name: `of-dc9-${n}`, role: "operator", site_ids: [siteId], expires_in_days: 30 });
    const nodes = [{ hostname: `c07u4${n}`, ipmi_ip: `10.0.9.4${n}` }];
    await post("/onboardings/batch", { site_id: siteId, profile_id: profileId, sku_id: skuId, nodes });
  }
  const { rows } = await pool.query<{ id: string }>("select id from nodes order by id limit 2");
  for (const { id } of rows) await post(`/nodes/${id}/drain`, { reason: "to be read" });
  await pool.query(
    "insert into webhook_deliveries (webhook_id, event_seq, state, attempts) select id, 100, 'pending', 0 from webhooks",
  );
  for (const { id } of rows) await post(`/nodes/${id}/cordon`, { reason: "to be read" });
  for (const { id } of rows) {
    const said = {
      type: "fabric.ready",
      status: "True",
      reason: "Up",
      message: "",
      observed_at: new Date().toISOString(),
    };
    const signal = { signal_id: `of-${id}`, node: { id }, conditions: [said] };
    await api.ask("POST", "/api/v1/readiness/signals", signal);
    await api.ask("POST", "/api/v1/readiness/senders", { name: `sender-${id.slice(-8)}`, site_ids: [siteId] });
  }
  for (const hostname of ["c08u41", "c08u42"]) {
    const host = { siteId: SiteId.parse(siteId), hostname, sku: skuId };
    const id = await api.database.database.inTx((tx) => addSchedulableNode(tx, host));
    await post("/allocations", { node_id: id, tenant: hostname, login_user: `u${hostname}`, ssh_keys: [SSH_KEY] });
  }
  for (const tenant of ["c08u41", "c08u42"]) {
    await post("/ssh-keys", { name: `of-${tenant}`, tenant, public_key: SSH_KEY, site_ids: [siteId] });
    await post("/ssh-key-groups", { name: `of-${tenant}`, tenant, site_ids: [siteId] });
  }
  await addRepairs(api, post, { siteId, skuId });
  for (const hostname of ["c08u43", "c08u44"]) {
    const host = { hostname, site_id: siteId, sku_id: skuId, region_code: "r1" };
    await post("/external-attempts", { ...host, provisioner: hostname });
  }
  for (const hostname of ["c09u41", "c09u42"]) {
    const node = await api.database.database.inTx((tx) =>
      addActiveNode(tx, { siteId: SiteId.parse(siteId), hostname }),
    );
    const operation = { mode: "drain", reason: "to be read" };
    await post("/decommissions/batch", { site_id: siteId, operation, node_ids: [node] });
  }
  for (const { id } of rows) await storeUnsignedRecord(api.database, NodeId.parse(id));
}

type Post = (path: string, body: object) => Promise<void>;

async function addRepairs(
  api: ApiHarness,
  post: Post,
  { siteId, skuId }: { readonly siteId: string; readonly skuId: string },
): Promise<void> {
  const { pool } = api.database.database;
  for (const hostname of ["c10u41", "c10u42"]) {
    const host = { siteId: SiteId.parse(siteId), hostname, sku: skuId };
    const id = await api.database.database.inTx((tx) => addSchedulableNode(tx, host));
    const issue = { category: "Hardware", summary: "to be read" };
    await post("/repairs", { node_id: id, machine_health_issue: issue, reason: "to be read" });
    // The one that repaired the machine before, whose repair systems see the case.
    const tenant = hostname.replace("c10", "c08");
    await pool.query("update repair_cases set tenant = $2, repair_tenant = $2 where node_id = $1", [id, tenant]);
  }
}
