import { join } from "node:path";
import { z } from "zod";
import { sql } from "../../hub/db/orm.ts";
import { startChild } from "../support/child.ts";
import { type Bench, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";

const SIZES = [1_000, 10_000] as const;
const SITES = 10;
const SKUS = 6;

const Scraped = z.object({
  p50: z.number(),
  blocked: z.number(),
  again: z.number(),
  bytes: z.number(),
  statements: z.number(),
});

/** Measures what a scrape of the metrics costs a hub, by the number of nodes. Each node has an agent session, a certificate and four conditions. */
export async function measureMetrics(stateDir: string): Promise<Figure[]> {
  return withDatabase(stateDir, async (bench) => {
    const figures: Figure[] = [];
    await bench.database.db.execute(sql`
      insert into maas_sites (name, region_code, api_base_url, pxe_iface, pxe_vlan_vid, node_pxe_iface, deploy_user, deploy_ssh_iface, upstream_dns_servers)
      select 'site ' || n, 'r', 'http://m' || n, 'e', 1, 'e', 'u', 'e', '{}' from generate_series(1, ${SITES}) n`);
    let nodes = 0;
    for (const size of SIZES) {
      await addNodes(bench, size - nodes);
      nodes = size;
      figures.push(...(await scrapesOf(bench, size)));
    }
    return figures;
  });
}

/** Every twentieth node has a running workflow and a queued task, and every hundredth node drifts. */
async function addNodes({ database: { db } }: Bench, count: number): Promise<void> {
  await db.execute(sql`
    with site as (select id, row_number() over () as place from maas_sites),
    node as (
      insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
      select gen_random_uuid(), 'h' || n || '-' || ${count}::int, s.id, 'sku-' || n % ${SKUS}, 8, 'r',
        (array['active', 'active', 'active', 'active', 'offline', 'quarantined', 'enrolling'])[1 + n % 7], 'maas'
      from generate_series(1, ${count}::int) n join site s on s.place = 1 + n % ${SITES} returning id, site_id, hostname),
    session as (
      insert into agent_sessions (node_id, session_epoch, hub_id, channel, state, boot_id, agent_version, protocol_version, generation, heartbeat_ttl_ms)
      select id, 1, gen_random_uuid(), 'websocket', 'open', 'b', '1', 1, 0, 10000 from node),
    certificate as (
      insert into node_certificates (serial, node_id, generation, public_key_sha256, not_before, not_after)
      select id::text, id, 0, '', now(), now() + interval '1 day' from node),
    condition as (
      insert into node_conditions (node_id, type, status, reason, message, generation, source, observed_at)
      select id, type, 'True', 'r', 'm', 0, 'agent', now() from node,
        unnest(array['agent.connected', 'agent.healthy', 'os.booted', 'network.roce']) type),
    binding as (
      insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip, drift_detected, drift_details)
      select id, site_id, id::text, '10.0.0.1', random() < 0.01, jsonb_build_object('rule', 'powered_off', 'detected_at', now()) from node),
    work as (
      insert into workflows (id, kind, status, site_id, stage, input, stage_entered_at, stage_deadline, wake_at)
      select gen_random_uuid(), 'onboard', 'running', site_id, 'wait_for_ready', '{}', now(), now() + interval '1 hour', now() + interval '1 hour'
      from node where random() < 0.05)
    insert into tasks (node_id, type, input, idempotency_key, deadline)
    select id, 'node.drain', '{}', 'k', now() + interval '1 hour' from node where random() < 0.05`);
  await db.execute(sql`analyze`);
}

async function scrapesOf({ url, stateDir }: Bench, size: number): Promise<Figure[]> {
  const hub = startChild({
    name: "scraped hub",
    script: "test/bench/scraped-hub.ts",
    env: { DATABASE_URL: url },
    logFile: join(stateDir, "scraped-hub.log"),
  });
  try {
    const scraped = Scraped.parse(await hub.ready);
    const of = `metrics of ${size} nodes`;
    const time = { unit: "ms", note: "median of 20 scrapes in OpenMetrics, each with a read of the database" };
    return [
      { name: `${of}, a scrape`, value: scraped.p50, ...time },
      {
        name: `${of}, a scrape within five seconds of another`,
        value: scraped.again,
        unit: "ms",
        note: "the median of 20",
      },
      {
        name: `${of}, longest block of the event loop`,
        value: scraped.blocked,
        unit: "ms",
        note: "the longest delay of a timer of 1 ms during these scrapes",
      },
      { name: `${of}, size`, value: scraped.bytes / 1024, unit: "KiB", note: "without compression" },
      { name: `${of}, SQL statements`, value: scraped.statements, unit: "statements", note: "one scrape" },
    ];
  } finally {
    await hub.stop();
  }
}
