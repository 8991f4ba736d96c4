import type { AdoptionFilter } from "../../../shared/api/adoptions.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import { and, asc, eq, inArray, ne, type SQL, sql } from "../orm.ts";
import {
  type MaasMachineRow,
  maasMachines,
  maasRoceAssignments,
  maasSiteWatches,
  nodeMaasState,
  nodes,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface MachineSelection {
  readonly systemIds: readonly string[];
  readonly hostnames: readonly string[];
  readonly filter: AdoptionFilter | null;
}

export interface AdoptableMachine {
  readonly machine: MaasMachineRow;
  readonly boundTo: { readonly id: NodeId; readonly status: NodeStatus } | null;
  readonly namesake: { readonly id: NodeId; readonly status: NodeStatus } | null;
  readonly heldBy: string | null;
  readonly hasTwin: boolean;
  readonly unreadable: boolean;
}

const words = (values: readonly string[]): SQL => sql`${sql.param([...values])}::text[]`;

/** A hostname selects only machines that MAAS still has, because a machine that was enlisted again may have the hostname of a machine that is gone. */
function selected({ systemIds, hostnames, filter }: MachineSelection): SQL {
  const m = maasMachines;
  if (filter === null)
    return sql`(${m.systemId} = any(${words(systemIds)}) or (not ${m.absent} and ${m.hostname} = any(${words(hostnames)})))`;
  const { tags, pool, zone, hostname_prefix: prefix } = filter;
  const all = [
    sql`${m.status} = ${MAAS_STATUS.deployed} and not ${m.absent}`,
    ...(tags === undefined ? [] : [sql`${m.details} -> 'tags' ?& ${words(tags)}`]),
    ...(pool === undefined ? [] : [sql`${m.details} ->> 'pool' = ${pool}`]),
    ...(zone === undefined ? [] : [sql`${m.details} ->> 'zone' = ${zone}`]),
    ...(prefix === undefined ? [] : [sql`starts_with(${m.hostname}, ${prefix})`]),
  ];
  return sql.join(all, sql` and `);
}

/** Reads the selected machines of the site with everything that may forbid their adoption, by one statement for any number of machines. */
export async function readAdoptableMachines(
  db: Db | Tx,
  siteId: SiteId,
  selection: MachineSelection,
  most: number,
): Promise<AdoptableMachine[]> {
  const m = maasMachines;
  const twins = sql`(select t.hostname from maas_machines t where t.site_id = ${siteId} and not t.absent
    group by t.hostname having count(*) > 1)`;
  const holder = sql<string | null>`(select w.workflow_id::text from workflow_subjects w
    where w.subject in ('machine:' || ${m.siteId}::text || '/' || ${m.systemId}, 'host:' || ${m.siteId}::text || '/' || ${m.hostname}) limit 1)`;
  // A node of manual mode without a site may be a host of any site, so its hostname is taken at every site.
  const namesake = sql`(select s.id from nodes s where s.hostname = ${m.hostname} and s.status <> 'deleted'
    and (s.site_id = ${m.siteId} or s.site_id is null) order by s.site_id nulls last, s.id limit 1)`;
  const rows = await db
    .select({
      machine: m,
      boundId: nodeMaasState.nodeId,
      boundStatus: sql<NodeStatus | null>`(select b.status from nodes b where b.id = ${nodeMaasState.nodeId})`,
      namesakeId: nodes.id,
      namesakeStatus: nodes.status,
      heldBy: holder,
      hasTwin: sql<boolean>`${m.hostname} in ${twins}`,
      unreadable: sql<boolean>`coalesce(${m.systemId} = any(${maasSiteWatches.unreadableSystemIds}), false)`,
    })
    .from(m)
    .leftJoin(nodeMaasState, and(eq(nodeMaasState.siteId, m.siteId), eq(nodeMaasState.maasSystemId, m.systemId)))
    .leftJoin(nodes, eq(nodes.id, namesake))
    .leftJoin(maasSiteWatches, eq(maasSiteWatches.siteId, m.siteId))
    .where(and(eq(m.siteId, siteId), selected(selection)))
    .orderBy(asc(m.hostname), asc(m.systemId))
    .limit(most);
  return rows.map((row) => {
    const isBound = row.boundId !== null && row.boundStatus !== null && row.boundStatus !== "deleted";
    const boundTo = isBound ? { id: row.boundId as NodeId, status: row.boundStatus as NodeStatus } : null;
    const named = row.namesakeId === null || row.namesakeStatus === null || row.namesakeId === boundTo?.id;
    return {
      machine: row.machine,
      boundTo,
      namesake: named ? null : { id: row.namesakeId as NodeId, status: row.namesakeStatus as NodeStatus },
      heldBy: row.heldBy,
      hasTwin: row.hasTwin,
      unreadable: row.unreadable,
    };
  });
}

/** The nodes that are bound to machines and may already hold the BMC or the system id of a machine that is to be adopted. */
export interface OtherBinding {
  readonly siteId: SiteId;
  readonly systemId: string;
  readonly hostname: string;
  readonly ipmiIp: string;
}

export async function readOtherBindings(
  db: Db | Tx,
  siteId: SiteId,
  { systemIds, bmcs }: { readonly systemIds: readonly string[]; readonly bmcs: readonly string[] },
): Promise<OtherBinding[]> {
  return db
    .select({
      siteId: nodeMaasState.siteId,
      systemId: nodeMaasState.maasSystemId,
      hostname: nodes.hostname,
      ipmiIp: nodeMaasState.ipmiIp,
    })
    .from(nodeMaasState)
    .innerJoin(nodes, and(eq(nodes.id, nodeMaasState.nodeId), ne(nodes.status, "deleted")))
    .where(
      sql`(${nodeMaasState.siteId} = ${siteId} and ${nodeMaasState.ipmiIp} = any(${words(bmcs)}))
        or (${nodeMaasState.siteId} <> ${siteId} and ${nodeMaasState.maasSystemId} = any(${words(systemIds)}))`,
    );
}

export interface RoceAddress {
  readonly hostname: string;
  readonly interface: string;
  readonly ipv4Cidr: string;
}

export const readRoceOfHosts = (db: Db | Tx, siteId: SiteId, hostnames: readonly string[]): Promise<RoceAddress[]> =>
  db
    .select({
      hostname: maasRoceAssignments.hostname,
      interface: maasRoceAssignments.interface,
      ipv4Cidr: maasRoceAssignments.ipv4Cidr,
    })
    .from(maasRoceAssignments)
    .where(and(eq(maasRoceAssignments.siteId, siteId), inArray(maasRoceAssignments.hostname, [...hostnames])))
    .orderBy(asc(maasRoceAssignments.hostname), asc(maasRoceAssignments.interface));

/** How many seconds ago a hub last read the changes of the site's machines from MAAS; null if none ever did. */
export async function secondsSincePoll(db: Db | Tx, siteId: SiteId): Promise<number | null> {
  const [row] = await db
    .select({ seconds: sql<number | null>`extract(epoch from now() - ${maasSiteWatches.lastPollAt})::float8` })
    .from(maasSiteWatches)
    .where(eq(maasSiteWatches.siteId, siteId));
  return row?.seconds ?? null;
}
