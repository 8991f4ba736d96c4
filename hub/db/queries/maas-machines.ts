import type { SiteId } from "../../../shared/ids.ts";
import { and, eq, sql } from "../orm.ts";
import { type MaasMachineRow, maasMachines } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export type ObservedMachine = Omit<MaasMachineRow, "siteId" | "observedAt" | "absent">;

export async function readObservedMachine(
  db: Db | Tx,
  siteId: SiteId,
  systemId: string,
): Promise<MaasMachineRow | null> {
  const [row] = await db
    .select()
    .from(maasMachines)
    .where(and(eq(maasMachines.siteId, siteId), eq(maasMachines.systemId, systemId)));
  return row ?? null;
}

export async function knownSystemIds(db: Db, siteId: SiteId): Promise<string[]> {
  const rows = await db
    .select({ systemId: maasMachines.systemId })
    .from(maasMachines)
    .where(and(eq(maasMachines.siteId, siteId), eq(maasMachines.absent, false)));
  return rows.map((row) => row.systemId);
}

export async function presentAmong(db: Db, siteId: SiteId, systemIds: readonly string[]): Promise<string[]> {
  const rows = await db
    .select({ systemId: maasMachines.systemId })
    .from(maasMachines)
    .where(
      and(
        eq(maasMachines.siteId, siteId),
        eq(maasMachines.absent, false),
        sql`${maasMachines.systemId} = any(${sql.param([...systemIds])}::text[])`,
      ),
    );
  return rows.map((row) => row.systemId);
}

const COLUMNS = {
  hostname: "text",
  status: "integer",
  status_name: "text",
  status_message: "text",
  error_description: "text",
  power_state: "text",
  owner: "text",
  locked: "boolean",
  ip_addresses: "text[]",
  interface_addresses: "jsonb",
  enable_hw_sync: "boolean",
  last_sync: "timestamptz",
  next_sync: "timestamptz",
  sync_interval_seconds: "integer",
  details: "jsonb",
} as const;
const NAMES = Object.keys(COLUMNS);
const of = (table: string): string => NAMES.map((name) => `${table}.${name}`).join(", ");
const FIELDS = sql.raw(
  Object.entries({ system_id: "text", ...COLUMNS })
    .map((field) => field.join(" "))
    .join(", "),
);
const INSERTED = sql.raw(NAMES.join(", "));
const SEEN = sql.raw(of("seen"));
const STORED = sql.raw(of("m"));
const ASSIGNED = sql.raw(NAMES.map((name) => `${name} = excluded.${name}`).join(", "));

/** Makes JSON for `jsonb_to_recordset`, which needs the names of the columns, and times as ISO 8601 text. */
const asRecord = (machine: ObservedMachine) => ({
  system_id: machine.systemId,
  hostname: machine.hostname,
  status: machine.status,
  status_name: machine.statusName,
  status_message: machine.statusMessage,
  error_description: machine.errorDescription,
  power_state: machine.powerState,
  owner: machine.owner,
  locked: machine.locked,
  ip_addresses: machine.ipAddresses,
  interface_addresses: machine.interfaceAddresses,
  enable_hw_sync: machine.enableHwSync,
  last_sync: machine.lastSync,
  next_sync: machine.nextSync,
  sync_interval_seconds: machine.syncIntervalSeconds,
  details: machine.details,
});

/**
 * `upsertObservedMachines` returns the system ids of new and changed machines. `upsertObservedMachines` neither writes nor locks the row of an
 * unchanged machine, and locks changed rows in the order of their ids. `upsertObservedMachines` keeps a row that another read of MAAS wrote after
 * `readSince`, because the row is newer than the present read. A caller of `upsertObservedMachines` names each machine only once.
 */
export async function upsertObservedMachines(
  tx: Tx,
  siteId: SiteId,
  machines: readonly ObservedMachine[],
  readSince: string | null,
): Promise<string[]> {
  if (machines.length === 0) return [];
  const { rows } = await tx.execute<{ system_id: string }>(sql`
    insert into maas_machines as m (site_id, system_id, ${INSERTED}, absent)
    select ${siteId}::uuid, seen.system_id, ${SEEN}, false
    from jsonb_to_recordset(${JSON.stringify(machines.map(asRecord))}::jsonb) as seen(${FIELDS})
    where not exists (select from maas_machines m where m.site_id = ${siteId}::uuid and m.system_id = seen.system_id
      and not m.absent and (${STORED}) is not distinct from (${SEEN}))
    order by seen.system_id
    on conflict (site_id, system_id) do update set ${ASSIGNED}, absent = false, observed_at = now()
    where ${readSince}::timestamptz is null or m.observed_at < ${readSince}::timestamptz
    returning m.system_id`);
  return rows.map((row) => row.system_id);
}

/** Marks machines as gone after MAAS answered 404 to a direct read of each machine (decision M14). */
export async function markAbsent(tx: Tx, siteId: SiteId, systemIds: readonly string[]): Promise<string[]> {
  if (systemIds.length === 0) return [];
  const { rows } = await tx.execute<{ system_id: string }>(sql`
    with gone as (
      select system_id from maas_machines
      where site_id = ${siteId}::uuid and system_id = any(${sql.param([...systemIds])}::text[]) and not absent
      order by system_id for update)
    update maas_machines m set absent = true, observed_at = now()
    from gone where m.site_id = ${siteId}::uuid and m.system_id = gone.system_id
    returning m.system_id`);
  return rows.map((row) => row.system_id);
}

/** Deletes the stored machines of a site that an operator moved to another MAAS region, because the machines belong to the old region. */
export async function forgetMachines(tx: Tx, siteId: SiteId): Promise<void> {
  await tx.delete(maasMachines).where(eq(maasMachines.siteId, siteId));
}
