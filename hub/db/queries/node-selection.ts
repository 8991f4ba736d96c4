import type { NodeFilter } from "../../../shared/api/batches.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { and, asc, count, eq, inArray, ne, type SQL } from "../orm.ts";
import { type Node, nodes } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { hostnameBegins } from "./node-filter.ts";

export interface NodeSelection {
  readonly siteId: SiteId;
  readonly ids?: readonly NodeId[] | undefined;
  readonly filter?: NodeFilter | undefined;
}

const selected = ({ siteId, ids, filter }: NodeSelection): SQL | undefined =>
  and(
    eq(nodes.siteId, siteId),
    ids === undefined ? undefined : inArray(nodes.id, [...ids]),
    ...(filter === undefined
      ? []
      : [
          filter.status === undefined ? ne(nodes.status, "deleted") : eq(nodes.status, filter.status),
          filter.sku_id === undefined ? undefined : eq(nodes.sku, filter.sku_id),
          filter.hostname_prefix === undefined ? undefined : hostnameBegins(filter.hostname_prefix),
        ]),
  );

export async function countMatchingNodes(tx: Tx, selection: NodeSelection): Promise<number> {
  const [row] = await tx.select({ nodes: count() }).from(nodes).where(selected(selection));
  return row?.nodes ?? 0;
}

/** PostgreSQL checks the filter a second time after a wait for a lock, so every returned node matches the filter while the lock lasts. */
export const lockMatchingNodes = (tx: Tx, selection: NodeSelection): Promise<Node[]> =>
  tx.select().from(nodes).where(selected(selection)).orderBy(asc(nodes.id)).for("no key update");
