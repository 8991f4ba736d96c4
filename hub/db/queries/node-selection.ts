import type { NodeFilter } from "../../../shared/api/node-selection.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { and, asc, count, eq, inArray, type SQL } from "../orm.ts";
import { type Node, nodes } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { matches } from "./node-filter.ts";

export interface NodeSelection {
  readonly siteId: SiteId;
  readonly ids?: readonly NodeId[] | undefined;
  readonly filter?: NodeFilter | undefined;
}

const listOf = <T>(value: T | readonly T[] | undefined): readonly T[] | undefined =>
  value === undefined ? undefined : ([value].flat() as T[]);

const ofFilter = (filter: NodeFilter): SQL | undefined =>
  matches({
    statuses: listOf(filter.status),
    skus: listOf(filter.sku_id),
    schedulable: filter.schedulable,
    room: filter.room,
    rack: filter.rack,
    placed: filter.placed,
    hostname: filter.hostname,
    address: filter.address,
    failureClasses: listOf(filter.failure_class),
    condition: filter.condition,
    healthOverride: filter.health_override,
    search: filter.search,
    hostnamePrefix: filter.hostname_prefix,
  });

/** The SQL condition that a node belongs to a selection. */
export const selectedNodes = ({ siteId, ids, filter }: NodeSelection): SQL | undefined =>
  and(
    eq(nodes.siteId, siteId),
    ids === undefined ? undefined : inArray(nodes.id, [...ids]),
    filter === undefined ? undefined : ofFilter(filter),
  );

export async function countMatchingNodes(tx: Tx, selection: NodeSelection): Promise<number> {
  const [row] = await tx.select({ nodes: count() }).from(nodes).where(selectedNodes(selection));
  return row?.nodes ?? 0;
}

/**
 * Locks the nodes of a selection, and returns those that match the filter while the lock lasts. The filter also reads tables whose rows are not
 * locked, and PostgreSQL would not read them again after a wait for a node's lock, so a second statement applies the filter to the locked nodes.
 */
export async function lockMatchingNodes(tx: Tx, selection: NodeSelection): Promise<Node[]> {
  const locked = await tx
    .select({ id: nodes.id })
    .from(nodes)
    .where(selectedNodes(selection))
    .orderBy(asc(nodes.id))
    .for("no key update");
  if (locked.length === 0) return [];
  return listMatchingNodes(tx, { ...selection, ids: locked.map(({ id }) => id) });
}

export const listMatchingNodes = (tx: Tx, selection: NodeSelection): Promise<Node[]> =>
  tx.select().from(nodes).where(selectedNodes(selection)).orderBy(asc(nodes.id));
