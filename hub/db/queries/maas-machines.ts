import { and, eq, inArray, sql } from "drizzle-orm";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { type MaasMachineRow, maasMachines, nodeMaasState } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** A machine as it was seen; a row's columns without the bookkeeping. */
export type ObservedMachine = Omit<MaasMachineRow, "siteId" | "observedAt" | "absent" | "details">;

export async function readObservedMachine(db: Db, siteId: SiteId, systemId: string): Promise<MaasMachineRow | null> {
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

/** Of these machines the ones that were seen and are not known to be gone. */
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

/** Compared to say whether a machine changed; `observed_at` is not among them. */
const COMPARED = [
  "hostname",
  "status",
  "status_name",
  "status_message",
  "error_description",
  "power_state",
  "owner",
  "locked",
  "ip_addresses",
  "enable_hw_sync",
  "last_sync",
  "next_sync",
  "sync_interval_seconds",
  "absent",
] as const;
const changed = sql.raw(
  `(${COMPARED.map((column) => `"maas_machines"."${column}"`).join(", ")}) is distinct from (${COMPARED.map((column) => `excluded."${column}"`).join(", ")})`,
);
const overwrite = sql.raw(`excluded`);

/** Writes what was seen, in one statement however many there are; returns the ids of the machines that changed, new ones included. */
export async function upsertObservedMachines(
  tx: Tx,
  siteId: SiteId,
  machines: readonly ObservedMachine[],
): Promise<string[]> {
  if (machines.length === 0) return [];
  const rows = await tx
    .insert(maasMachines)
    .values(machines.map((machine) => ({ ...machine, siteId, absent: false })))
    .onConflictDoUpdate({
      target: [maasMachines.siteId, maasMachines.systemId],
      set: {
        ...Object.fromEntries(UPDATED.map(([key, column]) => [key, sql`${overwrite}.${sql.identifier(column)}`])),
        observedAt: sql`now()`,
      },
      setWhere: changed,
    })
    .returning({ systemId: maasMachines.systemId });
  const ids = rows.map((row) => row.systemId);
  await followBindings(tx, siteId, ids);
  return ids;
}

const UPDATED: readonly (readonly [string, string])[] = [
  ["hostname", "hostname"],
  ["status", "status"],
  ["statusName", "status_name"],
  ["statusMessage", "status_message"],
  ["errorDescription", "error_description"],
  ["powerState", "power_state"],
  ["owner", "owner"],
  ["locked", "locked"],
  ["ipAddresses", "ip_addresses"],
  ["enableHwSync", "enable_hw_sync"],
  ["lastSync", "last_sync"],
  ["nextSync", "next_sync"],
  ["syncIntervalSeconds", "sync_interval_seconds"],
  ["absent", "absent"],
];

/** A direct read said 404: the machine is gone (decision M14). True when that is news. */
export async function markAbsent(tx: Tx, siteId: SiteId, systemId: string): Promise<boolean> {
  const rows = await tx
    .update(maasMachines)
    .set({ absent: true, observedAt: sql`now()` })
    .where(and(eq(maasMachines.siteId, siteId), eq(maasMachines.systemId, systemId), eq(maasMachines.absent, false)))
    .returning({ systemId: maasMachines.systemId });
  await followBindings(
    tx,
    siteId,
    rows.map((row) => row.systemId),
  );
  return rows.length > 0;
}

/** Nodes whose record names one of these machines. */
export async function nodesBoundTo(tx: Tx, siteId: SiteId, systemIds: readonly string[]): Promise<NodeId[]> {
  if (systemIds.length === 0) return [];
  const rows = await tx
    .select({ nodeId: nodeMaasState.nodeId })
    .from(nodeMaasState)
    .where(and(eq(nodeMaasState.siteId, siteId), inArray(nodeMaasState.maasSystemId, [...systemIds])));
  return rows.map((row) => row.nodeId);
}

/** Keeps `node_maas_state` of the nodes that are bound to these machines (lifecycle 6.5); what it means is the reconciler's to say. */
async function followBindings(tx: Tx, siteId: SiteId, systemIds: readonly string[]): Promise<void> {
  if (systemIds.length === 0) return;
  await tx
    .update(nodeMaasState)
    .set({
      lastMaasStatus: sql`case when ${maasMachines.absent} then 'absent' else ${maasMachines.statusName} end`,
      lastMaasPowerState: sql`${maasMachines.powerState}`,
      lastMaasIps: sql`${maasMachines.ipAddresses}`,
      reconcileDueAt: sql`clock_timestamp()`,
    })
    .from(maasMachines)
    .where(
      and(
        eq(nodeMaasState.siteId, siteId),
        eq(maasMachines.siteId, siteId),
        eq(nodeMaasState.maasSystemId, maasMachines.systemId),
        sql`${maasMachines.systemId} = any(${sql.param([...systemIds])}::text[])`,
      ),
    );
}
