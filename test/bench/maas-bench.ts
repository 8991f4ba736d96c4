/** A hub's database and MAAS client without listeners, for the benchmarks that read or adopt the machines of a simulated region. */
import { openDatabase } from "../../hub/db/client.ts";
import { createMaasClient } from "../../hub/maas/client.ts";
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

/** A sweep's time-out is so long that a sweep of any number of machines ends within one poll. */
const deps = { db, inTx, log, sweepIntervalMs: 0, sweepPatienceMs: 600_000 };

/** Returns the result of `work` with its seconds, its SQL statements and its requests to MAAS. */
async function cost<T>(work: () => Promise<T>) {
  const statements = countStatements();
  requests = 0;
  const began = performance.now();
  const result = await work();
  return { result, seconds: (performance.now() - began) / 1000, statements: statements(), requests };
}

/** Prints what was measured, with the peak of the process's memory and its growth over `before` bytes, and closes the database. */
async function finish(measured: Readonly<Record<string, unknown>>, before: number): Promise<void> {
  const peak = process.resourceUsage().maxRSS * 1024;
  await close();
  process.stdout.write(
    `${JSON.stringify({ ...measured, peakMiB: peak / 2 ** 20, grownMiB: (peak - before) / 2 ** 20 })}\n`,
  );
}

export { cost, db, deps, finish, inTx, maas };
