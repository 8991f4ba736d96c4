import { FACETS, type FacetName, type NodeFacets } from "../../../shared/api/node-filter.ts";
import { CONDITION_TYPES } from "../../../shared/condition-types.ts";
import { and, type SQL, sql } from "../orm.ts";
import { nodes } from "../schema/index.ts";
import type { Db } from "../tx.ts";
import { conditionStatus, type FilterSql, failedOperations, filterSql, type NodeFilter } from "./node-filter.ts";
import { schedulableNodes } from "./schedulable-nodes.ts";

/** The filter that a choice of one of the facet's values sets. */
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

/** SQL for a node's value of each facet, and for the rows that a node with several values is joined with. */
const VALUE_OF: Readonly<Record<FacetName, { readonly value: SQL; readonly join?: SQL }>> = {
  status: { value: sql`b.status` },
  schedulable: { value: sql`b.schedulable::text` },
  site_id: { value: sql`b.site_id::text` },
  sku_id: { value: sql`b.sku` },
  room: { value: sql`b.room` },
  rack: { value: sql`b.rack` },
  failure_class: {
    value: sql`failed.failure_class`,
    join: sql`join ${failedOperations} failed on failed.node_id = b.id`,
  },
  condition: {
    value: sql`c.type || ':' || ${conditionStatus}`,
    join: sql`join node_conditions c on c.node_id = b.id and c.generation = b.generation
      and c.type = any(${sql.param(Object.keys(CONDITION_TYPES))}::text[])`,
  },
};

/** The most values of a facet in one answer; the answer gives the number of values that it leaves out. */
const MOST_VALUES = 100;

type Counted = { facet: string; value: string | null; count: number; values: number };

/** SQL for the filters other than the facets' own; without a filter by status, the facet of the statuses counts deleted nodes too. */
function alwaysAsked(filters: FilterSql): SQL {
  const ofFacets = new Set<string>(Object.values(FILTER_OF));
  const rest = Object.entries(filters).filter(([name]) => !ofFacets.has(name) && name !== "deleted");
  return and(sql`true`, ...rest.map(([, condition]) => condition)) ?? sql`true`;
}

/** SQL for the column that says whether a node matches the facet's own filter. */
function ownFilter(facet: FacetName, filters: FilterSql): SQL {
  const own = filters[FILTER_OF[facet]];
  return sql`(${(facet === "status" ? (own ?? filters.deleted) : own) ?? sql`true`}) as ${sql.identifier(`fits_${facet}`)}`;
}

const fitsAllBut = (facet: FacetName | null): SQL =>
  sql.join(
    FACETS.filter((one) => one !== facet).map((one) => sql`b.${sql.identifier(`fits_${one}`)}`),
    sql` and `,
  );

function counts(facet: FacetName): SQL {
  const { value, join } = VALUE_OF[facet];
  return sql`select ${facet}::text as facet, ${value} as value, count(*)::int as count from base b ${join ?? sql``}
    where ${fitsAllBut(facet)} and ${value} is not null group by 2`;
}

/** Counts the nodes for each value of each facet in one SQL statement, so that all counts are of one moment. */
export async function countFacets(db: Db, filter: NodeFilter): Promise<NodeFacets> {
  const filters = filterSql(filter);
  const { rows } = await db.execute<Counted>(sql`
    with base as materialized (
      select ${nodes.id} as id, ${nodes.generation} as generation, ${nodes.status} as status, ${nodes.siteId} as site_id,
        ${nodes.sku} as sku, ${nodes.room} as room, ${nodes.rack} as rack,
        ${nodes.id} in ${schedulableNodes} as schedulable,
        ${sql.join(
          FACETS.map((facet) => ownFilter(facet, filters)),
          sql`, `,
        )}
      from ${nodes} where ${alwaysAsked(filters)}),
    counted as (${sql.join(FACETS.map(counts), sql` union all `)}),
    ranked as (
      select *, row_number() over (partition by facet order by count desc, value) as rank,
        (count(*) over (partition by facet))::int as values from counted)
    select facet, value, count, values from ranked where rank <= ${MOST_VALUES}
    union all select 'total', null, count(*)::int, 0 from base b where ${fitsAllBut(null)}
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
