import type { Pool } from "pg";

/** A text that is too long for the hub's diagnostics. */
const LONG = "x".repeat(20_000);

/**
 * Inserts `size` sites, hosts and other records of each kind, all with failures. `seedTroubledFleet` uses SQL statements, because requests to the API
 * would be slow for a large fleet.
 */
export async function seedTroubledFleet(pool: Pool, size: number): Promise<void> {
  const each = async (statement: string, ...values: unknown[]): Promise<void> => {
    await pool.query(statement.replace("#", "generate_series(1, $1::int) n"), [size, ...values]);
  };
  const id = (kind: string): string =>
    `overlay(overlay(md5('${kind}' || n) placing '4' from 13) placing '8' from 17)::uuid`;
  await each(`insert into maas_sites (id, name, region_code, api_base_url, api_token_vault_path, pxe_iface, pxe_vlan_vid,
      node_pxe_iface, deploy_user, deploy_ssh_iface, upstream_dns_servers)
    select ${id("site")}, 'dc' || n, 'r', 'http://maas/MAAS', 'kv/token/' || n, 'a', 1, 'b', 'u', 'c', '{}' from #`);
  await each(`insert into maas_site_watches (site_id, lease_owner, lease_until, consecutive_failures, last_error_code, last_error_at)
    select ${id("site")}, ${id("hub")}, now() - interval '1 minute', n, 'unauthorized', now() from #`);
  await each(`insert into maas_machines (site_id, system_id, hostname, status, status_name, status_message, error_description,
      power_state, locked, ip_addresses)
    select ${id("site")}, 'm' || n, 'h' || n, 8, 'Broken', '', '', 'off', false, '{}' from #`);
  await each(`insert into maas_power_credential_overrides (site_id, selector_type, selector_value, vault_path)
    select ${id("site")}, 'hostname', 'h' || n, 'kv/override/' || n from #`);
  await each(`insert into maas_credential_uses (path, site_id, last_failed_at, last_failure_code, last_failure_message)
    select 'kv/override/' || n, ${id("site")}, now(), 'bmc_unreachable', 'It does not answer' from #`);
  await each(`insert into reconciler_breakers (site_id, kind, tripped_at, would_move, move_limit, in_service, node_ids)
    select ${id("site")}, 'quarantine', now(), 9, 5, 10, '{}' from #`);
  await each(`insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
    select ${id("node")}, 'h' || n, ${id("site")}, 's', 8, 'r', 'offline', 'maas' from #`);
  await each(`insert into node_conditions (node_id, type, status, reason, message, generation, source, observed_at)
    select ${id("node")}, 'agent.connected', 'False', 'Reason' || n, 'away', 0, 'hub', now() from #`);
  await each(
    `insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip, drift_detected, drift_details, reconcile_due_at)
      select ${id("node")}, ${id("site")}, 'm' || n, '10.0.0.1', true, $2::jsonb, now() from #`,
    JSON.stringify({ rule: "hardware_failure", severity: "high", message: "Broken" }),
  );
  await each(`insert into agent_sessions (node_id, session_epoch, hub_id, channel, state, boot_id, agent_version, protocol_version,
      generation, heartbeat_ttl_ms)
    select ${id("node")}, 1, ${id("hub")}, 'websocket', 'open', 'b', '0.' || n, 1, 0, 10000 from #`);
  await each(`insert into connection_attempts (address, kind, detail, count, first_at, last_at)
    select '10.0.' || n, 'certificate_untrusted', 'unknown ca', 1, now(), now() from #`);
  await each(`insert into tasks (node_id, type, input, state, idempotency_key, deadline, error_code, error_message, finished_at)
    select ${id("node")}, 'type.' || n, '{"given": "to the agent"}', 'failed', 'k', now(), 'failed', 'It failed', now() from #`);
  for (const [kind, status] of WORKFLOWS) {
    await each(
      `insert into workflows (id, kind, status, site_id, stage, input, failure_class, failure_code, failure_message, evidence,
          stage_entered_at, lease_owner, lease_until)
        select ${id(kind)}, 'onboard', $2, ${id("site")}, 'stage_' || n, '{"given": "to the workflow"}', 'upstream_transient',
          'maas_unreachable', $3, jsonb_build_object('answer', $3::text), now(), ${id("hub")}, now() from #`,
      status,
      LONG,
    );
    await each(`insert into node_onboardings (onboarding_id, node_id, site_id, profile_id, sku_id, hostname, ipmi_ip)
      select ${id(kind)}, ${id("node")}, ${id("site")}, ${id("site")}, 's', 'h' || n, '10.0.0.1' from #`);
    await each(
      `insert into workflow_events (workflow_id, stage, attempt, status, message, details, fence, hub_id)
        select ${id(kind)}, 'stage', e, 'started', 'said ' || e, jsonb_build_object('answer', $2::text), e, ${id("hub")}
        from #, generate_series(1, 30) e`,
      LONG.slice(0, 2_000),
    );
  }
  await each(`insert into webhooks (id, url, types, fanned_out_to)
    select ${id("webhook")}, 'https://receiver.example/hook/own-key?k=own-key', '{*}', 0 from #`);
  await each(`insert into webhook_deliveries (webhook_id, event_seq, state, attempts, last_status, last_error)
    select ${id("webhook")}, n, 'dead', 5, 500, 'The receiver answered 500' from #`);
}

const WORKFLOWS = [
  ["failed", "failed_manual_intervention"],
  ["at work", "running"],
  ["waiting", "pending"],
  ["done", "completed"],
] as const;
