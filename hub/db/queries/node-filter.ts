import type { NodeId, SiteId } from "../../../shared/ids.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import { and, eq, inArray, isNotNull, isNull, ne, type SQL, sql } from "../orm.ts";
import { machineSearchTerms, nodes } from "../schema/index.ts";
import { EVERYWHERE, isWithin, type Reach } from "./reach.ts";
import { schedulableNodes } from "./schedulable-nodes.ts";

/** The filters of a list of nodes. A node matches if it matches every filter of the list; a filter that the caller did not give matches every node. */
export interface NodeFilter {
  readonly id?: NodeId | undefined;
  readonly ids?: readonly NodeId[] | undefined;
  /** The sites and the tenant to which the caller is limited; without `reach`, the list has the nodes of all sites. */
  readonly reach?: Reach | undefined;
  readonly statuses?: readonly NodeStatus[] | undefined;
  readonly schedulable?: boolean | undefined;
  readonly siteId?: SiteId | undefined;
  readonly skus?: readonly string[] | undefined;
  readonly room?: string | undefined;
  readonly rack?: string | undefined;
  /** Whether the list has only nodes with a rack and a rack unit (true), or only nodes without (false). A node without a rack has no rack unit. */
  readonly placed?: boolean | undefined;
  readonly hostname?: string | undefined;
  readonly hostnamePrefix?: string | undefined;
  readonly address?: string | undefined;
  readonly failureClasses?: readonly string[] | undefined;
  /** A filter by condition is a condition type, a colon, and True, False or Unknown. */
  readonly condition?: string | undefined;
  /** The source of a health override that the node has. */
  readonly healthOverride?: string | undefined;
  readonly search?: string | undefined;
  /** A list that is filtered by ids or by statuses may include deleted nodes, whatever `deleted` says. */
  readonly deleted?: boolean | undefined;
}

/** The SQL for each filter of a list of nodes, by the filter's name; undefined for a filter that the caller did not give. */
export type FilterSql = { readonly [K in keyof NodeFilter]-?: SQL | undefined };

const given = <T>(value: T | undefined, toSql: (value: T) => SQL): SQL | undefined =>
  value === undefined ? undefined : toSql(value);

const hostnameBegins = (prefix: string): SQL => sql`starts_with(${nodes.hostname}, ${prefix})`;

/**
 * In the SQL for the filter `schedulable`, `is true` and `is false` make PostgreSQL put the ids of all schedulable nodes into one hash table. Without
 * the words `is true` or `is false`, PostgreSQL joins the nodes with the subquery for the schedulable nodes, and sometimes compares each node of a
 * page with each schedulable node.
 */
const isSchedulable = (wanted: boolean): SQL =>
  wanted ? sql`(${nodes.id} in ${schedulableNodes}) is true` : sql`(${nodes.id} in ${schedulableNodes}) is false`;

/** SQL that is true if the host of a node, or the host's BMC, has the address. */
const hasAddress = (address: string): SQL => sql`(${nodes.host} = ${address} or ${nodes.id} in (
  select s.node_id from node_maas_state s where s.ipmi_ip = ${address} or ${address} = any(s.last_maas_ips)))`;

/** SQL for the nodes with a failed operation, each with the class of the failure. */
export const failedOperations = sql`(
  select o.node_id, w.failure_class from workflows w join node_onboardings o on o.onboarding_id = w.id
    where w.status in ('failed_retryable', 'failed_manual_intervention')
  union
  select d.node_id, w.failure_class from workflows w join node_decommissions d on d.decommission_id = w.id
    where w.status in ('failed_retryable', 'failed_manual_intervention'))`;

const hasFailed = (classes: readonly string[]): SQL => sql`${nodes.id} in (
  select failed.node_id from ${failedOperations} failed where failed.failure_class = any(${sql.param([...classes])}::text[]))`;

/** SQL for the status of the condition `c`; an expired condition counts as Unknown. */
export const conditionStatus = sql`case when c.expires_at <= now() then 'Unknown' else c.status end`;

function hasCondition(condition: string): SQL {
  const at = condition.lastIndexOf(":");
  return sql`exists (select 1 from node_conditions c where c.node_id = ${nodes.id} and c.generation = ${nodes.generation}
    and c.type = ${condition.slice(0, at)} and ${conditionStatus} = ${condition.slice(at + 1)})`;
}

const hasOverride = (source: string): SQL => sql`exists (select from node_health_overrides h
  where h.node_id = ${nodes.id} and h.source = ${source} and (h.expires_at is null or h.expires_at > now()))`;

/** Returns the spellings in which a host may have reported the searched text: unchanged, and, if it is a MAC address, with colons. */
function spellings(text: string): string[] {
  const digits = text.replace(/[:.-]/g, "");
  if (!/^[0-9a-f]{12}$/.test(digits)) return [text];
  return [...new Set([text, digits.replace(/(..)(?=.)/g, "$1:")])];
}

/**
 * SQL that is true if a node's name, asset tag, address, MAAS system id, MAC address, serial number or system UUID matches the searched text. A host
 * whose agent has not yet reported its inventory is found by what MAAS knows about the node's machine.
 */
function fits(search: string): SQL {
  const text = search.toLowerCase();
  const whole = sql.param(spellings(text));
  return sql`(strpos(${nodes.hostname}, ${text}) > 0 or lower(${nodes.assetTag}) = ${text} or starts_with(${nodes.host}, ${text}) or ${nodes.id} in (
    select s.node_id from node_maas_state s where starts_with(s.ipmi_ip, ${text}) or starts_with(s.maas_system_id, ${text})
      or exists (select 1 from unnest(s.last_maas_ips) ip where starts_with(ip, ${text}))
    union all select i.node_id from node_inventories i where i.search_terms ?| ${whole}::text[]
    union all select s.node_id from maas_machines m join node_maas_state s on s.site_id = m.site_id and s.maas_system_id = m.system_id
      where ${machineSearchTerms} ?| ${whole}::text[]
    union all select o.node_id from node_onboardings o where o.pxe_mac = any(${whole}::text[])))`;
}

export const filterSql = (filter: NodeFilter): FilterSql => ({
  id: given(filter.id, (id) => eq(nodes.id, id)),
  ids: given(filter.ids, (ids) => inArray(nodes.id, [...ids])),
  reach: isWithin(filter.reach ?? EVERYWHERE, { site: nodes.siteId }),
  statuses: given(filter.statuses, (statuses) => inArray(nodes.status, [...statuses])),
  schedulable: given(filter.schedulable, isSchedulable),
  siteId: given(filter.siteId, (id) => eq(nodes.siteId, id)),
  skus: given(filter.skus, (skus) => inArray(nodes.sku, [...skus])),
  room: given(filter.room, (room) => eq(nodes.room, room)),
  rack: given(filter.rack, (rack) => eq(nodes.rack, rack)),
  placed: given(filter.placed, (placed) => (placed ? isNotNull(nodes.unit) : isNull(nodes.unit))),
  hostname: given(filter.hostname, (hostname) => eq(nodes.hostname, hostname)),
  hostnamePrefix: given(filter.hostnamePrefix, hostnameBegins),
  address: given(filter.address, hasAddress),
  failureClasses: given(filter.failureClasses, hasFailed),
  condition: given(filter.condition, hasCondition),
  healthOverride: given(filter.healthOverride, hasOverride),
  search: given(filter.search, fits),
  deleted:
    filter.deleted === true || [filter.statuses, filter.id, filter.ids].some((one) => one !== undefined)
      ? undefined
      : ne(nodes.status, "deleted"),
});

export const matches = (filter: NodeFilter): SQL | undefined => and(...Object.values(filterSql(filter)));
