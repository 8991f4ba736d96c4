/** Sweeps all machines of one site twice as a hub's watcher does, and prints the cost of each sweep. */
import { randomUUID } from "node:crypto";
import { holdWatch } from "../../hub/db/queries/maas-site-watches.ts";
import { emptyMemory, type PollResult, pollSite } from "../../hub/watcher/poll.ts";
import type { SiteId } from "../../shared/ids.ts";
import { cost, db, deps, finish, maas } from "./maas-bench.ts";

const siteId = randomUUID() as SiteId;
const hubId = randomUUID();
const memory = emptyMemory();

async function poll(): Promise<PollResult | "lost"> {
  const watch = await holdWatch(db, siteId, hubId, 600);
  if (watch === null) throw new Error("somebody else watches the site");
  return pollSite(deps, siteId, watch, maas, memory);
}

async function read(): Promise<string> {
  const polled = await poll();
  return polled === "lost" ? polled : polled.read;
}

const sweep = () =>
  cost(async () => {
    if ((await read()) !== "all") throw new Error("the poll kept no sweep");
  });

await db.execute("select 1");
const before = process.memoryUsage.rss();
const first = await sweep();
const again = await sweep();
await finish({ listening: "swept", first, again }, before);
