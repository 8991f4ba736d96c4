import { FACETS, type FacetName, type NodeFacets } from "../../../shared/api/node-filter.ts";
import { CONDITION_TYPES } from "../../../shared/condition-types.ts";
import { and, type SQL, sql } from "../orm.ts";
import { nodes } from "../schema/index.ts";
import type { Db } from "../tx.ts";
import { conditionStatus, type FilterSql, failedOperations, filterSql, type NodeFilter } from "./node-filter.ts";
import { schedulableNodes } from "./schedulable-nodes.ts";

/** For each facet (a property by whose values a list of nodes can be narrowed), the name of the filter by these values. */
const FILTER_OF = {
  status: "statuses",
  schedulable: "schedulable",
  site_id: "siteId",
  sku_id: "skus",
  room: "room",
  rack: "rack",
  failure_class: "failureClasses",
  condition: "condition",
} as const satisfies Record<FacetName, keyof FilterSql>;

/** For each facet (a property that can filter the list of nodes) of which a node has at most one value, the SQL for the node's value. */
const VALUE_OF: Readonly<Record<Exclude<FacetName, "failure_class" | "condition">, SQL>> = {
  status: sql`b.status`,
  schedulable: sql`b.schedulable::text`,
  site_id: sql`b.site_id::text`,
  sku_id: sql`b.sku`,
  room: sql`b.room`,
  rack: sql`b.rack`,
};

/**
 * The most values of a facet (a property that can filter the list of nodes) in one answer of the API; the answer gives the number of values that it
 * leaves out.
 */
const MOST_VALUES = 100;

type Counted = { facet: string; value: string | null; count: number; values: number };

/**
 * SQL for the filters of the list of nodes that belong to no facet; without a filter by status, the counts of the facet `status` include deleted
 * nodes.
 */
function alwaysAsked(filters: FilterSql): SQL {
  const ofFacets = new Set<string>(Object.values(FILTER_OF));
  const rest = Object.entries(filters).filter(([name]) => !ofFacets.has(name) && name !== "deleted");
  return and(sql`true`, ...rest.map(([, condition]) => condition)) ?? sql`true`;
}

/** SQL for the caller's filter by values of the facet; undefined if the caller does not filter by this facet. */
const ownFilter = (facet: FacetName, filters: FilterSql): SQL | undefined =>
  filters[FILTER_OF[facet]] ?? (facet === "status" ? filters.deleted : undefined);

interface Fit {
  readonly facet: FacetName;
  /**
   * SQL for the column of the subquery `base` that says whether a node matches the facet's own filter; undefined for the facet `schedulable`, of
   * which `base` has a column anyway.
   */
  readonly column?: SQL;
  readonly isMet: SQL;
}

/**
 * Returns the facets (node properties such as the site or the status) by whose values the caller filters. The subquery `base` already finds the
 * schedulable nodes for the facet `schedulable`; a second search for the filter `schedulable` would double the time.
 */
const fitsOf = (filter: NodeFilter, filters: FilterSql): Fit[] =>
  FACETS.flatMap((facet): Fit[] => {
    const own = ownFilter(facet, filters);
    if (own === undefined) return [];
    if (facet === "schedulable") return [{ facet, isMet: sql`b.schedulable = ${filter.schedulable}` }];
    const name = sql.identifier(`fits_${facet}`);
    return [{ facet, column: sql`(${own}) as ${name}`, isMet: sql`b.${name}` }];
  });

const meetsAllBut = (facet: FacetName | null, fits: readonly Fit[]): SQL =>
  sql.join([sql`true`, ...fits.flatMap((fit) => (fit.facet === facet ? [] : [fit.isMet]))], sql` and `);

/**
 * SQL for the number of nodes with each status of each condition. A fleet has more than a hundred thousand conditions, so the statement counts them
 * before it writes the values as text.
 */
const conditionCounts = (meets: SQL): SQL => sql`
  select 'condition' as facet, counted.type || ':' || counted.status as value, counted.count from (
    select c.type, ${conditionStatus} as status, count(*)::int as count from node_conditions c
    where c.type = any(${sql.param(Object.keys(CONDITION_TYPES))}::text[])
      and (c.node_id, c.generation) in (select b.id, b.generation from base b where ${meets})
    group by 1, 2) counted`;

const failureCounts = (meets: SQL): SQL => sql`
  select 'failure_class' as facet, failed.failure_class as value, count(*)::int as count
  from base b join ${failedOperations} failed on failed.node_id = b.id
  where ${meets} and failed.failure_class is not null group by 2`;

function counts(facet: FacetName, fits: readonly Fit[]): SQL {
  const meets = meetsAllBut(facet, fits);
  if (facet === "condition") return conditionCounts(meets);
  if (facet === "failure_class") return failureCounts(meets);
  const value = VALUE_OF[facet];
  return sql`select ${facet}::text as facet, ${value} as value, count(*)::int as count from base b
    where ${meets} and ${value} is not null group by 2`;
}

/** Counts the nodes for each value of each facet in one SQL statement, so that all counts are of one moment. */
export async function countFacets(db: Db, filter: NodeFilter): Promise<NodeFacets> {
  const filters = filterSql(filter);
  const fits = fitsOf(filter, filters);
  const columns = fits.flatMap(({ column }) => (column === undefined ? [] : [sql`, ${column}`]));
  const { rows } = await db.execute<Counted>(sql`
    with base as materialized (
      select ${nodes.id} as id, ${nodes.generation} as generation, ${nodes.status} as status, ${nodes.siteId} as site_id,
        ${nodes.sku} as sku, ${nodes.room} as room, ${nodes.rack} as rack,
        (${nodes.id} in ${schedulableNodes}) is true as schedulable ${sql.join(columns)}
      from ${nodes} where ${alwaysAsked(filters)}),
    counted as (${sql.join(
      FACETS.map((facet) => counts(facet, fits)),
      sql` union all `,
    )}),
    ranked as (
      select *, row_number() over (partition by facet order by count desc, value) as rank,
        (count(*) over (partition by facet))::int as values from counted)
    select facet, value, count, values from ranked where rank <= ${MOST_VALUES}
    union all select 'total', null, count(*)::int, 0 from base b where ${meetsAllBut(null, fits)}
    order by facet, count desc, value`);
  const facets = Object.fromEntries(FACETS.map((facet) => [facet, facetOf(rows.filter((row) => row.facet === facet))]));
  return {
    total: rows.find((row) => row.facet === "total")?.count ?? 0,
    facets: facets as NodeFacets["facets"],
  };
}

const facetOf = (rows: readonly Counted[]): NodeFacets["facets"][FacetName] => ({
  values: rows.flatMap(({ value, count }) => (value === null ? [] : [{ value, count }])),
  more: (rows[0]?.values ?? 0) - rows.length,
});
