/** Adopts all machines of a region, with one request for each number of machines in SIZES, as a hub's route does, and prints what each request costs. */
import { adoptMachines } from "../../hub/adoption/adopt-machines.ts";
import { orderCommands } from "../../hub/adoption/order-commands.ts";
import { openDatabase } from "../../hub/db/client.ts";
import { holdWatch } from "../../hub/db/queries/maas-site-watches.ts";
import { createMaasClient } from "../../hub/maas/client.ts";
import { readMaasFacts } from "../../hub/startup/site-services.ts";
import { emptyMemory, pollSite } from "../../hub/watcher/poll.ts";
import { ADOPTION_DIFFERENCES } from "../../shared/adoption.ts";
import { AdoptionCommandsCreate, AdoptionCreate } from "../../shared/api/adoptions.ts";
import { SiteId } from "../../shared/ids.ts";
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
const siteId = SiteId.parse(process.env["SITE_ID"]);
const sizes = (process.env["SIZES"] ?? "").split(",").map(Number);
const maasFacts = readMaasFacts(async () => maas);

async function cost(work: () => Promise<number>) {
  const statements = countStatements();
  requests = 0;
  const began = performance.now();
  const machines = await work();
  return { machines, seconds: (performance.now() - began) / 1000, statements: statements(), requests };
}

/** The machines of the simulated region differ from the profile, so the request accepts each kind of difference. */
const requestOf = (systemIds: readonly string[], plan: boolean) =>
  AdoptionCreate.parse({
    sku_id: process.env["SKU"],
    profile_id: process.env["PROFILE_ID"],
    system_ids: systemIds,
    accept_differences: ADOPTION_DIFFERENCES,
    plan,
  });

async function adopt(systemIds: readonly string[], plan: boolean): Promise<number> {
  const facts = await maasFacts(siteId, systemIds);
  const answer = await inTx((tx) => adoptMachines(tx, siteId, requestOf(systemIds, plan), facts, "bench"));
  if (answer.refused > 0) throw new Error(JSON.stringify(answer).slice(0, 2_000));
  return answer.adopted;
}

const order = async (): Promise<number> =>
  (await inTx((tx) => orderCommands(tx, siteId, AdoptionCommandsCreate.parse({})))).commands.length;

const watch = await holdWatch(db, siteId, crypto.randomUUID(), 600);
if (watch === null) throw new Error("somebody else watches the site");
const sweep = { db, inTx, log, sweepIntervalMs: 0, sweepPatienceMs: 600_000 };
const polled = await pollSite(sweep, siteId, watch, maas, emptyMemory());
if (polled === "lost" || polled.read !== "all") throw new Error("the poll read no machines");
const { rows } = await db.execute<{ system_id: string }>("select system_id from maas_machines order by 1");
const all = rows.map((row) => row.system_id);

const before = process.memoryUsage.rss();
type Cost = Awaited<ReturnType<typeof cost>>;
const adopted: Record<"plan" | "first" | "again" | "commands", Cost>[] = [];
for (const size of sizes) {
  const ids = all.splice(0, size);
  const plan = await cost(() => adopt(ids, true));
  const first = await cost(() => adopt(ids, false));
  const again = await cost(() => adopt(ids, false));
  const commands = await cost(order);
  adopted.push({ plan, first, again, commands });
}
const peak = process.resourceUsage().maxRSS * 1024;
await close();
process.stdout.write(
  `${JSON.stringify({ listening: "adopted", adopted, peakMiB: peak / 2 ** 20, grownMiB: (peak - before) / 2 ** 20 })}\n`,
);
