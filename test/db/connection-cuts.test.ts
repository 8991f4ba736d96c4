import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../hub/db/client.ts";
import { openDatabase } from "../../hub/db/client.ts";
import { sql } from "../../hub/db/orm.ts";
import { CommitOutcomeUnknownError } from "../../hub/db/tx.ts";
import type { TestDatabase } from "../support/database.ts";
import { createTestDatabase } from "../support/database.ts";
import { quietLog } from "../support/log.ts";

const WORKERS = 8;
const CUTS = 30;
const AFTERWARDS = 200;

type Outcome = "committed" | "unknown" | "failed";

let test: TestDatabase;
let database: Database;
let admin: Client;
const uncaught: unknown[] = [];
const onUncaught = (error: unknown) => uncaught.push(error);

beforeAll(async () => {
  test = await createTestDatabase();
  // A connection pool that lost a client at each cut of connections would soon be empty, because the pool has one client for each worker (decision
  // P6).
  database = openDatabase({ url: test.url, poolSize: WORKERS, applicationName: "cut-me", log: quietLog });
  await database.db.execute(sql`create table cut_test (worker int, number int, primary key (worker, number))`);
  admin = new Client({ connectionString: test.url });
  await admin.connect();
  process.on("uncaughtException", onUncaught);
  process.on("unhandledRejection", onUncaught);
});

afterAll(async () => {
  process.off("uncaughtException", onUncaught);
  process.off("unhandledRejection", onUncaught);
  await admin?.end();
  await database?.close();
  await test?.drop();
});

async function insertOne(worker: number, number: number): Promise<Outcome> {
  try {
    await database.inTx(async (tx) => {
      await tx.execute(sql`insert into cut_test values (${worker}, ${number})`);
      await tx.execute(sql`select count(*) from cut_test where worker = ${worker}`);
    });
    return "committed";
  } catch (error) {
    return error instanceof CommitOutcomeUnknownError ? "unknown" : "failed";
  }
}

async function cutAll(): Promise<void> {
  await admin.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
}

async function storedNumbers(): Promise<Set<string>> {
  const { rows } = await admin.query<{ worker: number; number: number }>("select worker, number from cut_test");
  return new Set(rows.map(({ worker, number }) => `${worker}/${number}`));
}

describe("30 cuts of every connection under load", () => {
  const acknowledged = new Set<string>();
  const refused = new Set<string>();
  let unknown = 0;
  let next = 0;

  async function runWorker(worker: number, until: () => boolean): Promise<number> {
    let committed = 0;
    while (!until()) {
      next += 1;
      const key = `${worker}/${next}`;
      const outcome = await insertOne(worker, next);
      if (outcome === "committed") {
        acknowledged.add(key);
        committed += 1;
      } else if (outcome === "failed") refused.add(key);
      else unknown += 1;
    }
    return committed;
  }

  it("every worker continues after each cut", async () => {
    let cutting = true;
    const workers = Array.from({ length: WORKERS }, (_, worker) => runWorker(worker, () => !cutting));
    for (let cut = 0; cut < CUTS; cut += 1) {
      const before = acknowledged.size;
      // Before it cuts all database connections, the test waits for new commits, so that the cut hits a working connection pool.
      await expect
        .poll(() => acknowledged.size - before, { timeout: 30_000, interval: 5 })
        .toBeGreaterThan(WORKERS * 2);
      await cutAll();
    }
    cutting = false;
    await Promise.all(workers);
    expect(refused.size + unknown).toBeGreaterThan(0);
  });

  it("the whole pool works afterwards", async () => {
    const counts = await Promise.all(
      Array.from({ length: WORKERS }, async (_, worker) => {
        let left = AFTERWARDS;
        return await runWorker(worker, () => left-- === 0);
      }),
    );
    expect(counts).toEqual(Array.from({ length: WORKERS }, () => AFTERWARDS));
    expect(database.pool.waitingCount).toBe(0);
    expect(database.pool.idleCount).toBe(database.pool.totalCount);
  });

  it("every acknowledged commit is stored, no refused commit is stored, and no error is uncaught", async () => {
    const stored = await storedNumbers();
    expect([...acknowledged].filter((key) => !stored.has(key))).toEqual([]);
    expect([...refused].filter((key) => stored.has(key))).toEqual([]);
    expect(uncaught).toEqual([]);
  });
});
