import type { Pool } from "pg";

/** Inserts `size` nodes of an unreachable site, each with a drift and a failed onboarding, and returns the last node's name. */
export async function seedLargeFleet(pool: Pool, size: number): Promise<string> {
  const site = "select id as site from maas_sites where name = 'dark-dc2'";
  const number = "lpad(n::text, 5, '0')";
  const fleet = `with s as (${site}), fleet as (select site, n, 'fleet-' || ${number} as hostname, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid as id
    from s, generate_series(1, $1::int) n)`;
  await pool.query(
    `${fleet} insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
      select id, hostname, site, 'mi300x.192g.8gpu', 8, 'dark-1', 'offline', 'maas' from fleet`,
    [size],
  );
  await pool.query(
    `${fleet} insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip, last_reconciled_at, drift_detected, drift_details)
      select id, site, 'f' || n, '10.9.9.9', now(), true, jsonb_build_object('rule', 'powered_off', 'severity', 'high', 'action', 'none',
        'maas_status', 'Deployed', 'maas_status_code', 6, 'expected', 'on', 'message', hostname || ' is powered off',
        'detected_at', '2026-01-02T03:04:05.000Z', 'held_back', null) from fleet`,
    [size],
  );
  await pool.query(
    `${fleet} insert into workflows (id, kind, status, site_id, stage, input, failure_class, failure_code, failure_message, next_action)
      select id, 'onboard', 'failed_retryable', site, 'commission_node', '{}', 'upstream_transient', 'maas_timeout', 'MAAS did not answer', 'Retry'
      from fleet`,
    [size],
  );
  await pool.query(
    `${fleet} insert into node_onboardings (onboarding_id, node_id, site_id, profile_id, sku_id, hostname, ipmi_ip)
      select id, id, site, site, 'mi300x.192g.8gpu', hostname, '10.9.9.9' from fleet`,
    [size],
  );
  return `fleet-${String(size).padStart(5, "0")}`;
}
