/** Adopts all machines of a region, with one request for each number of machines in SIZES, as a hub's route does, and prints what each request costs. */
import { adoptMachines } from "../../hub/adoption/adopt-machines.ts";
import { orderCommands } from "../../hub/adoption/order-commands.ts";
import { holdWatch } from "../../hub/db/queries/maas-site-watches.ts";
import { readMaasFacts } from "../../hub/startup/site-services.ts";
import { emptyMemory, pollSite } from "../../hub/watcher/poll.ts";
import { ADOPTION_DIFFERENCES } from "../../shared/adoption.ts";
import { AdoptionCommandsCreate, AdoptionCreate } from "../../shared/api/adoptions.ts";
import { SiteId } from "../../shared/ids.ts";
import { cost, db, deps, finish, inTx, maas } from "./maas-bench.ts";

const siteId = SiteId.parse(process.env["SITE_ID"]);
const sizes = (process.env["SIZES"] ?? "").split(",").map(Number);
const maasFacts = readMaasFacts(async () => maas);

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
const polled = await pollSite(deps, siteId, watch, maas, emptyMemory());
if (polled === "lost" || polled.read !== "all") throw new Error("the poll read no machines");
const { rows } = await db.execute<{ system_id: string }>("select system_id from maas_machines order by 1");
const all = rows.map((row) => row.system_id);

const before = process.memoryUsage.rss();
type Cost = Awaited<ReturnType<typeof cost<number>>>;
const adopted: Record<"plan" | "first" | "again" | "commands", Cost>[] = [];
for (const size of sizes) {
  const ids = all.splice(0, size);
  const plan = await cost(() => adopt(ids, true));
  const first = await cost(() => adopt(ids, false));
  const again = await cost(() => adopt(ids, false));
  const commands = await cost(order);
  adopted.push({ plan, first, again, commands });
}
await finish({ listening: "adopted", adopted }, before);
