import type { Client } from "pg";

/**
 * The rule that no tenant's use of a host ends without a sanitization record: the records of each ended allocation form one path, in which each
 * record but the first follows the one before it. Such an allocation has exactly one last record.
 */

const PATHS = `
  with records as (
    select allocation_id::text as allocation, record_id::text as id, sequence, node_id, text::jsonb ->> 'follows' as follows
    from sanitization_records where allocation_id is not null)
  select e.allocation, count(r.id)::int as records, count(r.id) filter (where r.follows is null)::int as firsts,
    count(r.id) filter (where not exists (select 1 from records later where later.follows = r.id))::int as lasts
  from ENDED e left join records r on r.allocation = e.allocation
  group by e.allocation
  having count(r.id) filter (where r.follows is null) <> 1
    or count(r.id) filter (where not exists (select 1 from records later where later.follows = r.id)) <> 1
    or bool_or(r.follows is not null and not exists (select 1 from records before where before.id = r.follows
      and before.allocation = r.allocation and before.node_id = r.node_id and before.sequence < r.sequence))
  order by 1`;

/** Finds ended allocations without exactly one last record by the rows of the allocations. */
export const UNRECORDED_ALLOCATIONS = PATHS.replace(
  "ENDED",
  "(select id::text as allocation from allocations where status = 'ended')",
);

const UNRECORDED_ENDS = PATHS.replace(
  "ENDED",
  "(select distinct data ->> 'allocation_id' as allocation from domain_events where type = 'node.allocation.ended')",
);

/**
 * Finds the ends without exactly one last record that the hub has told by an event. A test that writes rows of ended allocations itself tells no
 * event. A database of an older version may lack the tables.
 */
export async function unrecordedEnds(client: Client): Promise<object[]> {
  const { rows } = await client.query<{ both: boolean }>(
    "select to_regclass('domain_events') is not null and to_regclass('sanitization_records') is not null as both",
  );
  return rows[0]?.both === true ? (await client.query(UNRECORDED_ENDS)).rows : [];
}
