import { randomUUID } from "node:crypto";
import { type HeldWatch, holdWatch } from "../../hub/db/queries/maas-site-watches.ts";
import type { MaasPort } from "../../hub/maas/port.ts";
import { type PollDependencies, type PollMemory, type PollResult, pollSite } from "../../hub/watcher/poll.ts";
import type { SiteId } from "../../shared/ids.ts";
import type { TestDatabase } from "./database.ts";
import type { Region } from "./listed-region.ts";
import { quietLog } from "./log.ts";

interface PolledSite {
  readonly siteId: SiteId;
  readonly region: Region;
  readonly memory: PollMemory;
}
type Options = Partial<Omit<PollDependencies, "db" | "inTx">> & { readonly maas?: MaasPort };

export const HUB = randomUUID();

export async function holdSite({ database }: TestDatabase, siteId: SiteId, hubId = HUB): Promise<HeldWatch> {
  const watch = await holdWatch(database.db, siteId, hubId, 60);
  if (watch === null) throw new Error("another hub watches the site");
  return watch;
}

/** Polls the site once, as the hub that holds the site's lease. After `pollOnce`, `region.asked` contains only the requests of that one poll. */
export async function pollOnce(
  test: TestDatabase,
  { siteId, region, memory }: PolledSite,
  { maas = region.port, ...more }: Options = {},
): Promise<PollResult | "lost"> {
  const { db, inTx } = test.database;
  const watch = await holdSite(test, siteId);
  region.asked.length = 0;
  return pollSite({ db, inTx, log: quietLog, sweepIntervalMs: 3_600_000, ...more }, siteId, watch, maas, memory);
}
