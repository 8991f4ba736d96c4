/**
 * A hub process for benchmarks: engine, site watcher and connection pool are as in hub/main.ts, without the hub's listeners. At SIGTERM, the
 * benchmark's hub process writes its counters to the table `bench_hubs`.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase } from "../../hub/db/client.ts";
import { sql } from "../../hub/db/orm.ts";
import { watchServer } from "../../hub/db/server-watch.ts";
import { createMaasClient } from "../../hub/maas/client.ts";
import { startWatcher } from "../../hub/watcher/watcher.ts";
import { startWorkflowRunner } from "../../hub/workflows/engine/runner.ts";
import { failure } from "../../shared/failures.ts";
import { createLog } from "../../shared/log.ts";
import { Secret } from "../../shared/secret.ts";
import { benchWorkflow } from "./bench-workflow.ts";
import { countStatements } from "./counted-statements.ts";

const databaseUrl = process.env["DATABASE_URL"] ?? "";
const maasUrl = process.env["MAAS_URL"];
const hubId = randomUUID();
const log = createLog("error");

/** The number of SQL statements of the benchmark's hub process, including BEGIN and COMMIT. */
const statements = countStatements();

const startedAt = performance.now();
let first: { statements: number; at: number } | null = null;
let last = 0;

const database = openDatabase({ url: databaseUrl, poolSize: 12, applicationName: "muster-bench", log });
const watch = watchServer({ url: databaseUrl, applicationName: "muster-bench", log });
const runner = startWorkflowRunner({
  db: database.db,
  inTx: database.inTx,
  hubId,
  workflows: [
    benchWorkflow({
      ran: () => {
        first ??= { statements: statements(), at: performance.now() };
        last = statements();
      },
      hold: (signal) => sleep(600_000, undefined, { signal }),
    }),
  ],
  classifyError: () => ({
    failure: failure("upstream_transient", "hub_internal_error", "bench"),
    retryAfterSeconds: null,
  }),
  log,
  databaseUrl,
});
const watcher =
  maasUrl === undefined
    ? null
    : startWatcher({
        db: database.db,
        inTx: database.inTx,
        hubId,
        clientFor: async () =>
          createMaasClient({ baseUrl: maasUrl, apiKey: new Secret(process.env["MAAS_KEY"] ?? "") }),
        log,
        pollIntervalMs: 5_000,
        sweepIntervalMs: 3_600_000,
      });

process.once("SIGTERM", async () => {
  const idle = first ?? { statements: statements(), at: performance.now() };
  const idlePerSecond = idle.statements / ((idle.at - startedAt) / 1000);
  await watch.close();
  await watcher?.close();
  await runner.close();
  await database.db.execute(
    sql`insert into bench_hubs values (${hubId}, ${Math.max(0, last - idle.statements)}, ${idlePerSecond})`,
  );
  await database.close();
  process.exit(0);
});
process.stdout.write(`${JSON.stringify({ listening: hubId })}\n`);
