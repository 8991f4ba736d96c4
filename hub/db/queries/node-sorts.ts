import { z } from "zod";
import type { NodeSort, NodeSortKey } from "../../../shared/api/node-filter.ts";
import { type SQL, sql } from "../orm.ts";
import { nodes } from "../schema/index.ts";

/** One key of a sort order: an SQL expression that is never null, and the SQL type to which the text in a cursor is cast. */
interface Key {
  readonly by: SQL;
  readonly type: "text" | "int4" | "timestamptz" | "uuid";
}
const text = (by: SQL): Key => ({ by, type: "text" });
const time = (by: SQL): Key => ({ by, type: "timestamptz" });

const HOSTNAME = text(sql`${nodes.hostname}`);
/** Every sort order of the list of nodes ends with the node's id, so that no two nodes have the same place in the list. */
const ID: Key = { by: sql`${nodes.id}`, type: "uuid" };

const KEYS: Readonly<Record<NodeSortKey, readonly Key[]>> = {
  hostname: [HOSTNAME, ID],
  status: [text(sql`${nodes.status}`), HOSTNAME, ID],
  sku_id: [text(sql`${nodes.sku}`), HOSTNAME, ID],
  location: [
    text(sql`coalesce(${nodes.room}, '')`),
    text(sql`coalesce(${nodes.rack}, '')`),
    { by: sql`coalesce(${nodes.unit}, 0)`, type: "int4" },
    HOSTNAME,
    ID,
  ],
  created_at: [time(sql`${nodes.createdAt}`), ID],
  updated_at: [time(sql`${nodes.updatedAt}`), ID],
  // A node whose agent never called sorts as if the agent had called before all others.
  last_agent_contact_at: [time(sql`coalesce(${nodes.lastAgentContactAt}, '-infinity')`), ID],
};

const keysOf = (sort: NodeSort): readonly Key[] => KEYS[sort.replace(/^-/, "") as NodeSortKey];
const isReversed = (sort: NodeSort): boolean => sort.startsWith("-");

/** The format of a time in the cursor of a list of nodes, as PostgreSQL writes a time in UTC. */
const TIME = /^(-infinity|\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00)$/;
const SHAPES = {
  text: z.string().max(256),
  int4: z.string().regex(/^\d{1,5}$/),
  timestamptz: z.string().regex(TIME),
  uuid: z.uuid(),
} as const;

/** The schema of a cursor for a sort order of nodes: the order's name, so that no list takes a cursor of another order, and the keys of the last row. */
export const cursorOf = (sort: NodeSort): z.ZodType<readonly string[]> =>
  z.tuple([z.literal(sort), ...keysOf(sort).map(({ type }) => SHAPES[type])]) as unknown as z.ZodType<
    readonly string[]
  >;

/** SQL for the cursor with which a list in the sort order continues after a row. */
export const cursorSql = (sort: NodeSort): SQL<string[]> =>
  sql`array[${sort}, ${sql.join(
    keysOf(sort).map(({ by }) => sql`(${by})::text`),
    sql`, `,
  )}]`;

/**
 * SQL that is true for the rows that follow the cursor in the sort order. The first text of a cursor of the list of nodes is the name of the sort
 * order.
 */
export function isAfter(sort: NodeSort, [, ...cursor]: readonly string[]): SQL {
  const keys = keysOf(sort);
  const row = sql.join(
    keys.map(({ by }) => by),
    sql`, `,
  );
  const values = sql.join(
    keys.map(({ type }, index) => sql`${cursor[index] ?? ""}::${sql.raw(type)}`),
    sql`, `,
  );
  return isReversed(sort) ? sql`(${row}) < (${values})` : sql`(${row}) > (${values})`;
}

export const orderSql = (sort: NodeSort): SQL[] =>
  keysOf(sort).map(({ by }) => (isReversed(sort) ? sql`${by} desc` : sql`${by} asc`));
