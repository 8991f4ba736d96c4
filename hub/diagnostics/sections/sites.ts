import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { sql } from "../../db/orm.ts";
import type { Tx } from "../../db/tx.ts";
import { bounded, iso, OF } from "../rows.ts";
import { databaseSection } from "../section.ts";

const MOST_SITES = 100;
const MOST_MACHINE_COUNTS = 300;

const Watch = z.strictObject({
  hub_id: z.uuid().nullable(),
  lease_until: Timestamp.nullable(),
  fence: z.int(),
  event_cursor: z.int().nullable(),
  last_look_at: Timestamp.nullable(),
  last_sweep_at: Timestamp.nullable(),
  wake_requested_at: Timestamp.nullable(),
  sweep_requested_at: Timestamp.nullable(),
  unreadable_machines: z.int(),
  consecutive_failures: z.int(),
  last_error_code: z.string().nullable(),
  last_error_at: Timestamp.nullable(),
});
const Site = z.strictObject({
  id: z.uuid(),
  name: z.string(),
  region_code: z.string(),
  status: z.string(),
  api_base_url: z.string(),
  /** Tells which of the site's secrets an operator has written, and never shows a secret's value. */
  credentials: z.strictObject({ maas_token: z.boolean(), power: z.boolean(), deploy_password: z.boolean() }),
  active_profiles: z.int(),
  /** The state of the watcher, the part of the hub that polls the site's MAAS region; null if no hub has watched the site yet. */
  watch: Watch.nullable(),
});
const Machines = z.strictObject({
  site_id: z.uuid(),
  /** The name of a machine's status in MAAS, or `absent` for machines that are gone. */
  status: z.string(),
  power_state: z.string(),
  count: z.int(),
  last_observed_at: Timestamp,
});

type Row = Omit<z.input<typeof Site>, "credentials" | "watch"> &
  z.input<typeof Site>["credentials"] & { watched: boolean; of: number } & z.input<typeof Watch>;

async function readSites(tx: Tx) {
  const { rows } = await tx.execute<Row>(sql`
    select s.id, s.name, s.region_code, s.status, s.api_base_url, s.api_token_vault_path is not null as maas_token,
      s.default_power_creds_vault_path is not null as power, s.deploy_password_vault_path is not null as deploy_password,
      (select count(*) from maas_site_profiles p where p.site_id = s.id and p.status = 'active')::int as active_profiles,
      w.site_id is not null as watched, w.lease_owner as hub_id, ${iso("w.lease_until")} as lease_until, w.fence::float8 as fence,
      w.event_cursor::float8 as event_cursor, ${iso("w.last_poll_at")} as last_look_at,
      ${iso("w.last_sweep_at")} as last_sweep_at, ${iso("w.wake_requested_at")} as wake_requested_at,
      ${iso("w.sweep_requested_at")} as sweep_requested_at, w.unreadable_machines, w.consecutive_failures,
      w.last_error_code, ${iso("w.last_error_at")} as last_error_at, ${OF}
    from maas_sites s left join maas_site_watches w on w.site_id = s.id
    order by coalesce(w.consecutive_failures, 0) desc, s.name limit ${MOST_SITES}`);
  const { shown, leftOut } = bounded("sites", rows);
  const sites = shown.map(
    ({ id, name, region_code, status, api_base_url, active_profiles, watched, ...rest }): z.input<typeof Site> => {
      const { maas_token, power, deploy_password, ...watch } = rest;
      const credentials = { maas_token, power, deploy_password };
      return {
        id,
        name,
        region_code,
        status,
        api_base_url,
        active_profiles,
        credentials,
        watch: watched ? watch : null,
      };
    },
  );
  return { sites, leftOut };
}

async function readMachines(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof Machines> & { of: number }>(sql`
    select site_id, case when absent then 'absent' else status_name end as status, power_state, count(*)::int as count,
      ${iso("max(observed_at)")} as last_observed_at, ${OF}
    from maas_machines group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit ${MOST_MACHINE_COUNTS}`);
  return bounded("machines", rows);
}

export const sites = databaseSection({
  name: "sites",
  about: "Sites with the state of their watchers, failing ones first, and the machines of each site by status",
  data: z.strictObject({ sites: z.array(Site), machines: z.array(Machines) }),
  read: async (tx) => {
    const { sites: all, leftOut } = await readSites(tx);
    const machines = await readMachines(tx);
    return { data: { sites: all, machines: machines.shown }, leftOut: [...leftOut, ...machines.leftOut] };
  },
});
