/** Sweeps all machines of one site twice as a hub's watcher does, and prints the cost of each sweep. */
import { randomUUID } from "node:crypto";
import { openDatabase } from "../../hub/db/client.ts";
import { holdWatch } from "../../hub/db/queries/maas-site-watches.ts";
import { createMaasClient } from "../../hub/maas/client.ts";
import { emptyMemory, type PollResult, pollSite } from "../../hub/watcher/poll.ts";
import type { SiteId } from "../../shared/ids.ts";
import { createLog } from "../../shared/log.ts";
import { Secret } from "../../shared/secret.ts";
import { countStatements } from "./counted-statements.ts";

const log = createLog("error");
const { db, inTx, close } = openDatabase({
  url: process.env["DATABASE_URL"] ?? "",
  poolSize: 4,
  applicationName: "muster-bench",
  log,
});
let requests = 0;
const maas = createMaasClient({
  baseUrl: process.env["MAAS_URL"] ?? "",
  apiKey: new Secret(process.env["MAAS_KEY"] ?? ""),
  onRequest: () => {
    requests += 1;
  },
});
const siteId = randomUUID() as SiteId;
const hubId = randomUUID();
const memory = emptyMemory();

/** A sweep's time-out is so long that a sweep of any number of machines ends within one poll. */
const deps = { db, inTx, log, sweepIntervalMs: 0, sweepPatienceMs: 600_000 };

async function poll(): Promise<PollResult | "lost"> {
  const watch = await holdWatch(db, siteId, hubId, 600);
  if (watch === null) throw new Error("somebody else watches the site");
  return pollSite(deps, siteId, watch, maas, memory);
}

async function read(): Promise<string> {
  const polled = await poll();
  return polled === "lost" ? polled : polled.read;
}

async function sweep() {
  const statements = countStatements();
  requests = 0;
  const began = performance.now();
  if ((await read()) !== "all") throw new Error("the poll kept no sweep");
  return { seconds: (performance.now() - began) / 1000, statements: statements(), requests };
}

await db.execute("select 1");
const before = process.memoryUsage.rss();
const first = await sweep();
const again = await sweep();
const peak = process.resourceUsage().maxRSS * 1024;
await close();
process.stdout.write(
  `${JSON.stringify({ listening: "swept", first, again, peakMiB: peak / 2 ** 20, grownMiB: (peak - before) / 2 ** 20 })}\n`,
);
