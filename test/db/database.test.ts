import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openDatabase } from "../../hub/db/client.ts";
import { StatementError } from "../../hub/db/drizzle.ts";
import type { Listener } from "../../hub/db/listen.ts";
import { listen, reconnectDelay } from "../../hub/db/listen.ts";
import { migrate } from "../../hub/db/migrate.ts";
import { sql } from "../../hub/db/orm.ts";
import { toDate } from "../../hub/db/timestamp.ts";
import { CommitOutcomeUnknownError, TransactionRolledBackError } from "../../hub/db/tx.ts";
import type { TestDatabase } from "../support/database.ts";
import { createTestDatabase } from "../support/database.ts";
import { quietLog } from "../support/log.ts";

let test: TestDatabase;
let admin: Client;

beforeAll(async () => {
  test = await createTestDatabase();
  admin = new Client({ connectionString: test.url });
  await admin.connect();
  await admin.query("create table note (id int primary key, text text not null)");
});

afterAll(async () => {
  await admin?.end();
  await test?.drop();
});

async function countNotes(): Promise<number> {
  const { rows } = await admin.query<{ count: number }>("select count(*)::int as count from note");
  return rows[0]?.count ?? -1;
}

async function cut(applicationName: string): Promise<number> {
  const { rowCount } = await admin.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and datname = current_database()",
    [applicationName],
  );
  return rowCount ?? 0;
}

describe("a transaction", () => {
  it("commits what its function wrote, and rolls back when it throws", async () => {
    const { inTx } = test.database;
    await inTx((tx) => tx.execute(sql`insert into note values (1, 'kept')`));
    const thrown = new Error("no");
    await expect(
      inTx(async (tx) => {
        await tx.execute(sql`insert into note values (2, 'lost')`);
        throw thrown;
      }),
    ).rejects.toBe(thrown);
    expect(await countNotes()).toBe(1);
  });

  it("throws when a swallowed error turned COMMIT into a rollback", async () => {
    const attempt = test.database.inTx(async (tx) => {
      await tx.execute(sql`insert into note values (3, 'lost')`);
      await tx.execute(sql`select 1/0`).catch(() => undefined);
    });
    await expect(attempt).rejects.toBeInstanceOf(TransactionRolledBackError);
    expect(await countNotes()).toBe(1);
  });

  it("distinguishes a refused commit from a commit with unknown outcome", async () => {
    await admin.query("create table child (note int references note deferrable initially deferred)");
    const refused = test.database.inTx((tx) => tx.execute(sql`insert into child values (999)`));
    await expect(refused).rejects.toMatchObject({ code: "23503" });

    // A deferred trigger sleeps in the database during COMMIT, so that the test can cut the connection during COMMIT.
    await admin.query(`
      create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return null; end $$;
      create constraint trigger slow after insert on note deferrable initially deferred for each row
        when (new.id = 4) execute function slow()`);
    const attempt = test.database.inTx((tx) => tx.execute(sql`insert into note values (4, 'who knows')`));
    const outcome = expect(attempt).rejects.toBeInstanceOf(CommitOutcomeUnknownError);
    await vi.waitUntil(
      async () =>
        (
          await admin.query(
            "select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()",
          )
        ).rowCount === 1,
      { timeout: 20_000 },
    );
    await cut("muster-test");
    await outcome;
  });

  it("can be read-only and serializable", async () => {
    const readOnly = test.database.inTx((tx) => tx.execute(sql`insert into note values (5, '')`), { readOnly: true });
    await expect(readOnly).rejects.toMatchObject({ code: "25006" });
    const { rows } = await test.database.inTx((tx) => tx.execute(sql`show transaction_isolation`), {
      isolation: "serializable",
    });
    expect(rows).toEqual([{ transaction_isolation: "serializable" }]);
  });

  it("runs again after PostgreSQL ended it as a deadlock, so that both transactions succeed", async () => {
    const { inTx } = test.database;
    await inTx((tx) => tx.execute(sql`insert into note values (11, ''), (12, '')`));
    const held: (() => void)[] = [];
    let runs = 0;
    const bothHold = new Promise<void>((resolve) => {
      held.push(() => undefined, resolve);
    });
    const lockBoth = (first: number, second: number) =>
      inTx(async (tx) => {
        runs += 1;
        await tx.execute(sql`update note set text = text || 'x' where id = ${first}`);
        held.shift()?.();
        await bothHold;
        await tx.execute(sql`update note set text = text || 'x' where id = ${second}`);
      });
    await Promise.all([lockBoth(11, 12), lockBoth(12, 11)]);
    // The repeated transaction may take its first lock before the survivor wakes, and then there is a second deadlock.
    expect(runs).toBeGreaterThanOrEqual(3);
    const { rows } = await admin.query<{ text: string }>("delete from note where id > 10 returning text");
    expect(rows).toEqual([{ text: "xx" }, { text: "xx" }]);
  });

  it("returns its connection to the pool after each of these cases", () => {
    expect(test.database.pool.idleCount).toBe(test.database.pool.totalCount);
  });
});

describe("a statement", () => {
  it("fails with its code and without its parameters", async () => {
    const secret = "canary-3f9a";
    const failures = await Promise.all([
      test.database.db.execute(sql`insert into note values (1, ${secret})`).catch((error: unknown) => error),
      test.database.db.execute(sql`select ${secret}::int`).catch((error: unknown) => error),
      test.database
        .inTx((tx) => tx.execute(sql`insert into note values (1, ${secret})`))
        .catch((error: unknown) => error),
    ]);
    expect(failures.map((error) => (error instanceof StatementError ? error.code : error))).toEqual([
      "23505",
      "22P02",
      "23505",
    ]);
    expect(failures[0]).toMatchObject({ constraint: "note_pkey" });
    for (const error of failures) {
      const cause = error instanceof Error ? error.cause : undefined;
      const seen = `${error} ${error instanceof Error ? error.stack : ""} ${cause} ${JSON.stringify(error)}`;
      expect(seen).not.toContain(secret);
    }
  });

  it("is ended by the server after a statement time-out, a lock time-out, or an idle transaction", async () => {
    const short = { connectMs: 5_000, statementMs: 300, lockMs: 100, idleInTransactionMs: 100 };
    const impatient = openDatabase({
      url: test.url,
      poolSize: 2,
      applicationName: "impatient",
      log: quietLog,
      timeouts: short,
    });
    try {
      await expect(impatient.db.execute(sql`select pg_sleep(30)`)).rejects.toMatchObject({ code: "57014" });
      await admin.query("begin; lock table note");
      await expect(impatient.db.execute(sql`select * from note`)).rejects.toMatchObject({ code: "55P03" });
      await admin.query("rollback");
      const idle = impatient.inTx(async (tx) => {
        await tx.execute(sql`select 1`);
        await vi.waitUntil(async () => {
          const { rowCount } = await admin.query(
            "select from pg_stat_activity where application_name = 'impatient' and state like 'idle in%'",
          );
          return rowCount === 0;
        });
        await tx.execute(sql`select 1`);
      });
      await expect(idle).rejects.toThrow();
    } finally {
      await impatient.close();
    }
  });

  it("returns raw timestamps as text, which toDate reads", async () => {
    const { rows } = await test.database.db.execute(sql`select timestamptz '2026-01-02 03:04:05.6789+02' as at`);
    expect(toDate(rows[0]?.["at"]).toISOString()).toBe("2026-01-02T01:04:05.678Z");
  });
});

describe("migrations", () => {
  it("can be run by several hubs at once, and repeatedly", async () => {
    await admin.query("drop schema drizzle cascade; drop schema public cascade; create schema public");
    await Promise.all([migrate(test.url), migrate(test.url), migrate(test.url)]);
    const applied = await admin.query("select hash from drizzle.__drizzle_migrations");
    await migrate(test.url);
    const again = await admin.query("select hash from drizzle.__drizzle_migrations");
    expect(new Set(applied.rows.map(({ hash }) => String(hash))).size).toBe(applied.rows.length);
    expect(again.rows).toEqual(applied.rows);
  });
});

describe("a listener", () => {
  it("receives notifications, and after a cut reports a reconnect and receives again", async () => {
    const heard: string[] = [];
    let connects = 0;
    const listener: Listener = listen({
      url: test.url,
      applicationName: "listener",
      channels: ["wake", "With Capitals"],
      log: quietLog,
      onNotify: (channel, payload) => heard.push(`${channel}:${payload}`),
      onReconnect: () => {
        connects += 1;
      },
    });
    await listener.ready;
    await admin.query(`notify wake, 'one'; notify "With Capitals"`);
    await vi.waitUntil(() => heard.length === 2, { timeout: 20_000 });
    expect(await cut("listener")).toBe(1);
    await vi.waitUntil(() => connects === 2, { timeout: 20_000 });
    await admin.query("notify wake, 'two'");
    await vi.waitUntil(() => heard.length === 3, { timeout: 20_000 });
    expect(heard).toEqual(["wake:one", "With Capitals:", "wake:two"]);
    await listener.close();
  });

  it("repeats its attempts while the database is away, and can be closed meanwhile", async () => {
    const warnings: string[] = [];
    const listener = listen({
      url: "postgres://nobody@127.0.0.1:1/none",
      applicationName: "listener",
      channels: [],
      log: { ...quietLog, warn: (message) => warnings.push(message) },
      onNotify: () => undefined,
      onReconnect: () => undefined,
    });
    await vi.waitUntil(() => warnings.length >= 3, { timeout: 20_000 });
    await listener.close();
  });

  it("backs off with full jitter up to ten seconds", () => {
    expect([0, 1, 2, 10, 1000].map((attempt) => reconnectDelay(attempt, 1))).toEqual([200, 400, 800, 10_000, 10_000]);
    expect(reconnectDelay(5, 0)).toBe(0);
  });
});
