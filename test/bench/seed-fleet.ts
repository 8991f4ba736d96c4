import { type SQL, sql } from "../../hub/db/orm.ts";
import type { Db } from "../../hub/db/tx.ts";
import { CONDITION_TYPES } from "../../shared/condition-types.ts";
import { COMPARED_ITEMS } from "../../shared/residue/items.ts";

const id = (prefix: string) => sql.raw(`('${prefix}-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`);

/** The hub's database ends a statement after 30 s. On a busy machine one statement for the whole fleet takes longer. */
const NODES_AT_ONCE = 500;

/**
 * Inserts a fleet of `size` nodes on two sites, with the facts that a real fleet has: machines, inventories, conditions of every type, baselines, ended
 * onboardings and ten tasks for each node. One node of ten is out of service for one of several reasons.
 */
export async function seedFleet(db: Db, size: number): Promise<void> {
  await db.execute(sql`insert into maas_sites (id, name, region_code, api_base_url, pxe_iface, pxe_vlan_vid, node_pxe_iface, deploy_user, deploy_ssh_iface, upstream_dns_servers)
    select ${id("aaaaaaaa")}, 'dc' || n, 'r' || n, 'http://maas' || n, 'e', 1, 'e', 'ubuntu', 'e', '{}' from generate_series(0, 1) n`);
  await db.execute(sql`insert into skus (id, description, gpu_vendor, gpu_model, gpus_total)
    values ('h100', '', 'nvidia', '', 8), ('mi300', '', 'amd', '', 8)`);
  for (let first = 1; first <= size; first += NODES_AT_ONCE)
    await seedNodes(db, sql.raw(`generate_series(${first}, ${Math.min(first + NODES_AT_ONCE - 1, size)}) n`));
}

/** Inserts the nodes that `each` numbers, with their facts, their operations, their tasks and their allocations. */
async function seedNodes(db: Db, each: SQL): Promise<void> {
  const site = sql.raw("('aaaaaaaa-0000-4000-8000-' || lpad((n % 2)::text, 12, '0'))::uuid");
  await db.execute(sql`
    insert into nodes (id, hostname, site_id, host, sku, gpus_total, region_code, status, onboarding_mode, generation, room, rack, unit,
      last_agent_contact_at, updated_at, created_at)
    select ${id("bbbbbbbb")}, 'c' || lpad((n / 40)::text, 3, '0') || 'u' || lpad(n::text, 5, '0'), ${site}, '10.1.' || n / 250 || '.' || n % 250,
      case when n % 3 = 0 then 'mi300' else 'h100' end, 8, 'r', case n % 40 when 1 then 'quarantined' when 2 then 'offline' when 3 then 'retired' else 'active' end,
      'maas', 1, 'A', 'r' || n / 40, n % 40 + 1, now() - make_interval(secs => n % 600), now() - make_interval(mins => n), now() - make_interval(hours => n)
    from ${each}`);
  await db.execute(sql`insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip, last_maas_ips)
    select ${id("bbbbbbbb")}, ${site}, 'x' || to_hex(n), '10.2.' || n / 250 || '.' || n % 250, array['10.1.' || n / 250 || '.' || n % 250] from ${each}`);
  await db.execute(sql`insert into maas_machines (site_id, system_id, hostname, status, status_name, status_message, error_description, power_state, locked,
      ip_addresses, details)
    select ${site}, 'x' || to_hex(n), 'c' || n, 6, 'Deployed', '', '', 'on', false, array['10.1.' || n / 250 || '.' || n % 250],
      jsonb_build_object('serial', 'SYS-' || n, 'hardware_uuid', ${id("bbbbbbbb")}, 'tags', array['gpu', 'h100'], 'pool', 'default', 'zone', 'default',
        'macs', (select jsonb_agg('02:00:00:0' || i || ':' || substr(lpad(to_hex(n), 4, '0'), 1, 2) || ':' || substr(lpad(to_hex(n), 4, '0'), 3, 2)) from generate_series(0, 8) i))
    from ${each}`);
  await db.execute(sql`insert into node_inventories (node_id, inventory)
    select ${id("bbbbbbbb")}, jsonb_build_object('system', jsonb_build_object('uuid', ${id("bbbbbbbb")}),
      'interfaces', (select jsonb_agg(jsonb_build_object('name', 'eth' || i, 'mac', '02:00:00:0' || i || ':' || substr(lpad(to_hex(n), 4, '0'), 1, 2) || ':' || substr(lpad(to_hex(n), 4, '0'), 3, 2)))
        from generate_series(0, 8) i),
      'disks', (select jsonb_agg(jsonb_build_object('name', 'nvme' || i, 'serial', 'SN' || i || '-' || n)) from generate_series(0, 8) i)) from ${each}`);
  await db.execute(sql`
    insert into node_conditions (node_id, type, status, reason, message, generation, source, observed_at, expires_at)
    select ${id("bbbbbbbb")}, type, case when type = 'agent.healthy' and n % 50 = 4 then 'False' else 'True' end, 'Fine', 'A message of some length', 1, 'agent', now(),
      case when type = 'agent.healthy' then now() + interval '1 day' end
    from ${each}, unnest(${sql.param(Object.keys(CONDITION_TYPES))}::text[]) type`);
  await db.execute(sql`
    insert into node_baselines (node_id, generation, task_id, requested_by, reason, snapshot)
    select ${id("bbbbbbbb")}, 1, ${id("cccccccc")}, 'hub', 'first', (select jsonb_object_agg(item, jsonb_build_object('entries', '[]'::jsonb))
      from unnest(${sql.param(COMPARED_ITEMS)}::text[]) item) from ${each}`);
  await db.execute(sql`
    insert into workflows (id, kind, status, site_id, stage, input, failure_class, next_action, requested_at, stage_deadline, completed_at)
    select ${id("dddddddd")}, 'onboard', case when n % 100 = 5 then 'failed_retryable' else 'completed' end, ${site}, 'deploy_via_maas', '{}',
      case when n % 100 = 5 then 'upstream_transient' end, case when n % 100 = 5 then 'Retry' end, now() - make_interval(mins => n), null,
      case when n % 100 = 5 then null else now() end from ${each}`);
  await db.execute(sql`insert into node_onboardings (onboarding_id, node_id, site_id, profile_id, sku_id, hostname, ipmi_ip)
    select ${id("dddddddd")}, ${id("bbbbbbbb")}, ${site}, ${id("eeeeeeee")}, 'h100', 'c' || n, '10.2.0.1' from ${each}`);
  await db.execute(sql`insert into tasks (node_id, type, input, state, idempotency_key, attempts, deadline, created_at)
    select ${id("bbbbbbbb")}, case t when 3 then 'node.drain' when 4 then 'node.undrain' else 'node.heartbeat_check' end, '{}', 'succeeded', t, 1, now(),
      now() - make_interval(mins => 20 - t) from ${each}, generate_series(1, 10) t`);
  await db.execute(sql`insert into allocations (node_id, hostname, generation, tenant, login_user, ssh_keys, grants_root, labels, status, created_by)
    select ${id("bbbbbbbb")}, 'c' || n, 1, 'acme', 'ada', '{}', false, '{}', 'active', 'ann' from ${each} where n % 2 = 0`);
}
