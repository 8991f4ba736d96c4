import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import type { TestDatabase } from "../../support/database.ts";
import { insertSite } from "../../support/site.ts";

/** A text with a script that would run if the page treated the text as markup. */
export const MARKUP = "<img src=x onerror=alert(1)>";

/** Hosts of a site whose MAAS no hub can reach, so that the hosts' stored state does not change. */
export const DARK = {
  site: "dark-dc2",
  /** A quarantined host whose fault has ended, so that its machine in MAAS has the status Deployed. */
  mended: "dark-mended",
  gone: "dark-gone",
  /** A host whose drift an operator has acknowledged with a reason that contains markup. */
  known: "dark-known",
  retired: "dark-retired",
  /** A hostname with markup, which only an older hub may have stored. */
  odd: `odd${MARKUP}`,
} as const;

export async function seedDarkSite(database: TestDatabase): Promise<SiteId> {
  const { pool, db } = database.database;
  const siteId = await insertSite(db, { name: DARK.site });
  await seedNode(pool, siteId, DARK.mended, { status: "quarantined", quarantined: true, drift: drift("Deployed", 6) });
  await seedNode(pool, siteId, DARK.gone, { status: "quarantined", quarantined: true, drift: drift("absent", null) });
  await seedNode(pool, siteId, DARK.known, { status: "offline", acknowledged: true, drift: drift("Deployed", 6) });
  await seedNode(pool, siteId, DARK.retired, { status: "retired" });
  await seedNode(pool, siteId, DARK.odd, { status: "retired", drift: drift("Deployed", 6) });
  for (const kind of ["quarantine", "offline"])
    await pool.query(
      `insert into reconciler_breakers (site_id, kind, tripped_at, would_move, moved, move_limit, in_service, node_ids)
        values ($1, $2, now(), 7, 3, 5, 12, '{}')`,
      [siteId, kind],
    );
  return siteId;
}

const drift = (status: string, code: number | null) => ({
  rule: code === null ? "machine_deleted" : "hardware_failure",
  severity: code === null ? "critical" : "warning",
  action: "quarantine",
  maas_status: status,
  maas_status_code: code,
  expected: "Deployed",
  message: `MAAS says ${MARKUP} of this machine`,
  detected_at: "2026-01-02T03:04:05.000Z",
  held_back: code === null ? "The breaker of the site is open" : null,
});

interface Seeded {
  readonly status: string;
  readonly quarantined?: boolean;
  readonly acknowledged?: boolean;
  readonly drift?: ReturnType<typeof drift>;
}

async function seedNode(pool: Pool, siteId: SiteId, hostname: string, as: Seeded): Promise<NodeId> {
  const id = randomUUID() as NodeId;
  const systemId = id.slice(0, 6);
  await pool.query(
    `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
      values ($1, $2, $3, 'h100', 8, 'dark-1', $4, 'maas')`,
    [id, hostname, siteId, as.status],
  );
  const acknowledged = { rule: as.drift?.rule, maas_status_code: 6, by: "ann", at: "2026-01-03T00:00:00.000Z" };
  await pool.query(
    `insert into node_maas_state (node_id, site_id, maas_system_id, ipmi_ip, last_reconciled_at, drift_detected, drift_details,
        drift_acknowledged, quarantined_at)
      values ($1, $2, $3, '10.9.9.9', now(), $4, $5, $6, case when $7 then now() end)`,
    [
      id,
      siteId,
      systemId,
      as.drift !== undefined && as.acknowledged !== true,
      as.drift ?? null,
      as.acknowledged === true ? { ...acknowledged, reason: MARKUP } : null,
      as.quarantined ?? false,
    ],
  );
  if (as.drift?.maas_status_code !== null)
    await pool.query(
      `insert into maas_machines (site_id, system_id, hostname, status, status_name, status_message, error_description,
          power_state, locked, ip_addresses)
        values ($1, $2, $3, 6, 'Deployed', '', '', 'on', false, '{10.9.1.1}')`,
      [siteId, systemId, hostname],
    );
  return id;
}
