import { randomUUID } from "node:crypto";
import { type HeldWatch, holdWatch } from "../../hub/db/queries/maas-site-watches.ts";
import type { MaasPort } from "../../hub/maas/port.ts";
import { type LookDependencies, type LookMemory, type LookResult, lookAtSite } from "../../hub/watcher/look.ts";
import type { SiteId } from "../../shared/ids.ts";
import type { TestDatabase } from "./database.ts";
import type { Region } from "./listed-region.ts";
import { quietLog } from "./log.ts";

interface Looked {
  readonly siteId: SiteId;
  readonly region: Region;
  readonly memory: LookMemory;
}
type Options = Partial<Omit<LookDependencies, "db" | "inTx">> & { readonly maas?: MaasPort };

/** The id of the hub as which the tests of a file act. */
export const HUB = randomUUID();

export async function holdSite({ database }: TestDatabase, siteId: SiteId, hubId = HUB): Promise<HeldWatch> {
  const watch = await holdWatch(database.db, siteId, hubId, 60);
  if (watch === null) throw new Error("another hub watches the site");
  return watch;
}

/** Polls the site once, as the hub that holds the site's lease. After the call, `region.asked` contains only the requests of this one poll. */
export async function lookOnce(
  test: TestDatabase,
  { siteId, region, memory }: Looked,
  { maas = region.port, ...more }: Options = {},
): Promise<LookResult | "lost"> {
  const { db, inTx } = test.database;
  const watch = await holdSite(test, siteId);
  region.asked.length = 0;
  return lookAtSite({ db, inTx, log: quietLog, sweepIntervalMs: 3_600_000, ...more }, siteId, watch, maas, memory);
}
