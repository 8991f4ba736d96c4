import { eq, ne, sql } from "drizzle-orm";
import type { SiteId } from "../../../shared/ids.ts";
import { TERMINAL_WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { lockUntilCommit } from "../advisory-locks.ts";
import { type MaasSite, maasSites, maasSiteWatches } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** A site that has a say over the machines of its region, and the newest event that was seen of that region. */
export interface RegionInUse {
  readonly site: Pick<MaasSite, "id" | "name" | "apiBaseUrl" | "status">;
  readonly place: { readonly cursor: number; readonly mark: string } | null;
}

/**
 * Sites other than this one that are active, or, though disabled, still have nodes or work that is not over: those are watched, judged and worked on
 * all the same.
 */
export async function regionsInUse(db: Db | Tx, otherThan: SiteId): Promise<RegionInUse[]> {
  const rows = await db
    .select({
      site: { id: maasSites.id, name: maasSites.name, apiBaseUrl: maasSites.apiBaseUrl, status: maasSites.status },
      cursor: maasSiteWatches.eventCursor,
      mark: maasSiteWatches.eventMark,
    })
    .from(maasSites)
    .leftJoin(maasSiteWatches, eq(maasSiteWatches.siteId, maasSites.id))
    .where(
      sql`${ne(maasSites.id, otherThan)} and (${maasSites.status} = 'active'
        or exists (select 1 from node_maas_state s join nodes n on n.id = s.node_id
          where s.site_id = ${maasSites.id} and n.status <> 'deleted')
        or exists (select 1 from workflows w where w.site_id = ${maasSites.id}
          and w.status <> all(${sql.param([...TERMINAL_WORKFLOW_STATUSES])}::text[])))`,
    )
    .orderBy(maasSites.name);
  return rows.map(({ site, cursor, mark }) => ({
    site,
    place: cursor === null || mark === null ? null : { cursor, mark },
  }));
}

/** Until the transaction ends nobody else gives a site an address, or enables one: of two that would take the same, the later one sees the first. */
export const lockSiteAddresses = (tx: Tx): Promise<void> => lockUntilCommit(tx, "site_addresses");
