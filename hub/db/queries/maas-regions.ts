import type { SiteId } from "../../../shared/ids.ts";
import { eq, ne } from "../orm.ts";
import { type MaasSite, maasSites, maasSiteWatches } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { countBoundNodes } from "./node-machines.ts";
import { countUnfinished } from "./workflows.ts";

export interface RegionInUse {
  readonly site: Pick<MaasSite, "id" | "name" | "apiBaseUrl" | "status">;
  readonly place: { readonly cursor: number; readonly mark: string } | null;
}

/** Muster still watches and changes the machines of a disabled site that has nodes or unfinished workflows. */
export async function regionsInUse(db: Db | Tx, otherThan: SiteId): Promise<RegionInUse[]> {
  const rows = await db
    .select({
      site: { id: maasSites.id, name: maasSites.name, apiBaseUrl: maasSites.apiBaseUrl, status: maasSites.status },
      cursor: maasSiteWatches.eventCursor,
      mark: maasSiteWatches.eventMark,
    })
    .from(maasSites)
    .leftJoin(maasSiteWatches, eq(maasSiteWatches.siteId, maasSites.id))
    .where(ne(maasSites.id, otherThan))
    .orderBy(maasSites.name);
  const inUse: RegionInUse[] = [];
  for (const { site, cursor, mark } of rows)
    if (await hasSay(db, site)) inUse.push({ site, place: cursor === null || mark === null ? null : { cursor, mark } });
  return inUse;
}

const hasSay = async (db: Db | Tx, { id, status }: RegionInUse["site"]): Promise<boolean> =>
  status === "active" || (await countBoundNodes(db, id)) > 0 || (await countUnfinished(db, id)) > 0;
