import { afterAll, beforeAll, expect, it } from "vitest";
import { openDatabase } from "../../hub/db/client.ts";
import { listen } from "../../hub/db/listen.ts";
import { watchServer } from "../../hub/db/server-watch.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { quietLog } from "../support/log.ts";
import { type PostgresProxy, startPostgresProxy } from "../support/postgres-proxy.ts";
import { until } from "../support/until.ts";

let test: TestDatabase;
let proxy: PostgresProxy;
beforeAll(async () => {
  test = await createTestDatabase();
  proxy = await startPostgresProxy(test.url);
});
afterAll(async () => {
  await proxy?.close();
  await test?.drop();
});

it("connections to a silent server end and are made anew to another server, and a slow statement ends none", async () => {
  const url = test.url.replace(/@([^/]*)/, `@${new URL(proxy.url).host},$1`);
  const about = { url, applicationName: "silent", log: quietLog };
  const database = openDatabase({ ...about, poolSize: 2 });
  let connected = 0;
  const onReconnect = () => {
    connected += 1;
  };
  const listener = listen({ ...about, channels: ["silence"], onNotify: () => undefined, onReconnect });
  const watch = watchServer({ ...about, askEveryMs: 50, tickMs: 400 });
  const select = () => database.pool.query("select 1 as n");
  try {
    await listener.ready;
    await until("the watch has asked", async () => {
      const { rows } = await database.pool.query(
        "select from pg_stat_activity where application_name = 'silent' and datname = current_database() and query = 'select 1'",
      );
      return rows[0];
    });
    // The statement takes longer than the watch's patience.
    await database.pool.query("select pg_sleep(3)");
    expect(connected).toBe(1);
    proxy.silent = true;
    await expect(Promise.all([select(), database.inTx((tx) => tx.execute("select 1"))])).rejects.toThrow(/is silent/);
    await until("the next server answers", () => select().catch(() => undefined));
    await until("the listener has connected again", () => (connected > 1 ? true : undefined));
  } finally {
    await watch.close();
    await listener.close();
    await database.close();
  }
});
