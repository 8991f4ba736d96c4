import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { type Database, openDatabase } from "../../hub/db/client.ts";
import { startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { migrate } from "../../hub/db/migrate.ts";
import { sql } from "../../hub/db/orm.ts";
import { workflows } from "../../hub/db/schema/index.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { type Child, startChild } from "../support/child.ts";
import { quietLog } from "../support/log.ts";
import { TIMED } from "./bench-workflow.ts";

export interface Bench {
  readonly url: string;
  readonly database: Database;
  readonly stateDir: string;
}

/**
 * Starts a PostgreSQL server that waits for the disk at each commit, as a hub's server does. The benchmark's hub processes write their counters to
 * the table `bench_hubs`.
 */
export async function withDatabase<T>(stateDir: string, measure: (bench: Bench) => Promise<T>): Promise<T> {
  const postgres = await startEmbeddedPostgres({ stateDir: join(stateDir, "postgres-home"), log: quietLog });
  await migrate(postgres.url);
  const options = { url: postgres.url, poolSize: 4, applicationName: "muster-bench-reader", log: quietLog };
  const database = openDatabase(options);
  await database.db.execute(
    sql`create table if not exists bench_hubs (hub_id uuid, statements int, idle_per_second float8)`,
  );
  try {
    return await measure({ url: postgres.url, database, stateDir });
  } finally {
    await database.close();
    await postgres.stop();
  }
}

export interface EngineHub {
  readonly id: string;
  readonly child: Child;
}

export async function startEngineHub(bench: Bench, env: Readonly<Record<string, string>> = {}): Promise<EngineHub> {
  const child = startChild({
    name: "engine hub",
    script: "test/bench/engine-hub.ts",
    env: { DATABASE_URL: bench.url, ...env },
    logFile: join(bench.stateDir, "engine-hubs.log"),
  });
  return { id: String((await child.ready)["listening"]), child };
}

/** Inserts one workflow at `stage` for each number in `delays`, which is due after that number of milliseconds. */
export async function insertRows({ database }: Bench, stage: string, delays: readonly number[]): Promise<WorkflowId[]> {
  const rows = delays.map((delay) => ({
    id: randomUUID() as WorkflowId,
    kind: "bench",
    status: "running" as const,
    stage,
    wakeAt: sql`now() + make_interval(secs => ${delay / 1000})`,
    input: stage === TIMED ? sql`jsonb_build_object('due', extract(epoch from now()) * 1000 + ${delay}::float8)` : {},
  }));
  await database.inTx((tx) => tx.insert(workflows).values(rows));
  return rows.map((row) => row.id);
}

export const percentile = (values: readonly number[], part: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN;
};
