import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { claimDeliveries, endAttempt, replayDeliveries } from "../../../hub/db/queries/webhook-deliveries.ts";
import { fanOut } from "../../../hub/db/queries/webhook-fan-out.ts";
import { countOpen } from "../../../hub/db/queries/webhooks.ts";
import type { InTx, Tx } from "../../../hub/db/tx.ts";
import { SECRET_PATHS } from "../../../hub/secrets/port.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { until } from "../../support/until.ts";
import { HOOKS, newSecret, Receiver, startSender, writeEvent } from "../../support/webhook-receiver.ts";

/** No hub contacts the address `NOBODY`, because the tests with this address run no webhook sender. */
const NOBODY = "http://127.0.0.1:9999/";
const CLAIM = { perWebhook: 4, leaseSeconds: 60 };

describe("the webhook sender", () => {
  let api: ApiHarness;
  const closers: (() => Promise<void> | void)[] = [];
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
    await api.close();
  });

  const write = (subject: string) => writeEvent(api.database.database.inTx, subject);
  const run = async (text: string, values: readonly unknown[] = []) =>
    (await api.database.database.pool.query(text, [...values])).rows;
  const create = async (url: string): Promise<string> =>
    (await api.ask("POST", HOOKS, { url, secret: newSecret() })).body.id;
  async function receiver(answer: Receiver["answer"] = () => 204) {
    const one = new Receiver();
    one.answer = answer;
    const url = await one.start();
    closers.push(() => one.stop());
    return { one, url, received: one.received };
  }
  function sender() {
    const started = startSender(api);
    let ended: Promise<void> | null = null;
    const close = () => {
      ended ??= started.close();
      return ended;
    };
    closers.push(close);
    return close;
  }
  const backlog = async (webhookId: string, rows: number, due: string) => {
    await run(
      `insert into webhook_deliveries (webhook_id, event_seq, next_attempt_at)
       select $1, g, ${due} from generate_series(1000, 999 + $2::int) g`,
      [webhookId, rows],
    );
    await run("analyze webhook_deliveries");
  };
  const deliveryOf = async (webhookId: string) =>
    (await run("select * from webhook_deliveries where webhook_id = $1", [webhookId]))[0];

  it("keeps delivering while events keep coming for many webhooks", async () => {
    const { url, received } = await receiver();
    for (let made = 0; made < 10; made += 1) await create(url);
    sender();
    let writing = true;
    const writer = (async () => {
      while (writing) await write("nodes/flow");
    })();
    try {
      await until("deliveries meanwhile", async () => (received.length >= 40 ? true : undefined));
    } finally {
      writing = false;
      await writer;
    }
  });

  it("takes one step per lagging webhook, so that one far behind does not delay the others", async () => {
    const { db, inTx } = api.database.database;
    await run(`insert into domain_events (type, subject, data)
      select 'node.status.changed', 'nodes/old', '{}' from generate_series(1, 3000)`);
    const [behind, first, second] = [await create(NOBODY), await create(NOBODY), await create(NOBODY)];
    await run("update webhooks set fanned_out_to = 0 where id = $1", [behind]);
    await write("nodes/urgent");
    expect(await fanOut(db, inTx)).toBe(true);
    const pending = [...(await countOpen(db, [behind, first, second]))].map(([id, open]) => [id, open.pending]);
    expect(Object.fromEntries(pending)).toEqual({ [behind]: 500, [first]: 1, [second]: 1 });
    while (await fanOut(db, inTx));
    expect((await countOpen(db, [behind])).get(behind)).toEqual({ pending: 3001, dead: 0 });
  });

  it("claims at most four deliveries of a webhook, even if several hubs claim at once", async () => {
    const { inTx } = api.database.database;
    await backlog(await create(NOBODY), 200, "now()");
    for (let round = 0; round < 20; round += 1) {
      await run("update webhook_deliveries set lease_until = null");
      const claimed = await Promise.all([1, 2, 3].map(() => claimDeliveries(inTx, CLAIM)));
      expect(claimed.flat()).toHaveLength(4);
    }
  });

  it("finds due and open deliveries without reading the whole backlog", async () => {
    const { db, inTx } = api.database.database;
    const [one, other] = [await create(NOBODY), await create(NOBODY)];
    await backlog(one, 20_000, "now()");
    await run("insert into webhook_deliveries (webhook_id, event_seq) values ($1, 1)", [other]);
    const scans = async (tx: Tx) => {
      const { rows } = await tx.execute<{ seq_scan: string; seq_tup_read: string }>(
        "select seq_scan::text, seq_tup_read::text from pg_stat_xact_user_tables where relname = 'webhook_deliveries'",
      );
      return rows[0];
    };
    const none = { seq_scan: "0", seq_tup_read: "0" };
    const watched: InTx = (fn) =>
      inTx(async (tx) => {
        const result = await fn(tx);
        expect(await scans(tx)).toEqual(none);
        return result;
      });
    expect(await claimDeliveries(watched, CLAIM)).toHaveLength(5);
    const open = await watched((tx) => countOpen(tx, [other]));
    expect([...open]).toEqual([[other, { pending: 1, dead: 0 }]]);
    const { rows } = await db.execute("show jit");
    expect(rows).toEqual([{ jit: "off" }]);
  });

  it("lets no old attempt end a delivery that was replayed and claimed again", async () => {
    const { inTx } = api.database.database;
    const id = await create(NOBODY);
    await backlog(id, 1, "now()");
    const [before] = await claimDeliveries(inTx, CLAIM);
    if (before === undefined) throw new Error("nothing was claimed");
    await inTx((tx) => replayDeliveries(tx, id, before.delivery.id));
    const told = { lastStatus: 500, lastError: "failed" };
    expect(await inTx((tx) => endAttempt(tx, before.delivery, { ...told, state: "dead" }))).toBe(false);
    const [after] = await claimDeliveries(inTx, CLAIM);
    if (after === undefined) throw new Error("nothing was claimed again");
    expect(after.delivery.attempts).toBe(1);
    expect(await inTx((tx) => endAttempt(tx, before.delivery, { ...told, state: "dead" }))).toBe(false);
    expect(await inTx((tx) => endAttempt(tx, after.delivery, { ...told, state: "delivered" }))).toBe(true);
  });

  it("ignores a 410 from the webhook's former address, and delivers to the new one", async () => {
    const answered = Promise.withResolvers<void>();
    const former = await receiver(async () => {
      await answered.promise;
      return 410;
    });
    const current = await receiver();
    sender();
    const id = await create(former.url);
    await write("nodes/moved");
    await until("the former is asked", async () => (former.received.length > 0 ? true : undefined));
    const etag = (await api.ask("GET", `${HOOKS}/${id}`)).headers.get("etag") ?? "";
    expect((await api.ask("PATCH", `${HOOKS}/${id}`, { url: current.url }, { "if-match": etag })).status).toBe(200);
    answered.resolve();
    await until("the current is told", async () => (current.received.length > 0 ? true : undefined));
    expect((await api.ask("GET", `${HOOKS}/${id}`)).body).toMatchObject({ active: true, dead: 0 });
  });

  it("waits until the date in the receiver's Retry-After", async () => {
    const date = new Date(Date.now() + 7_200_000).toUTCString();
    const { url } = await receiver(() => ({ status: 503, headers: { "retry-after": date } }));
    sender();
    const id = await create(url);
    await write("nodes/later");
    const delivery = await until("the first attempt", async () => {
      const row = await deliveryOf(id);
      return row?.last_status === 503 ? row : undefined;
    });
    expect(delivery.next_attempt_at.getTime()).toBeGreaterThan(Date.now() + 3_600_000);
  });

  it("gives an attempt back when its hub stops, so another hub makes it at once", async () => {
    const { one, url, received } = await receiver(() => null);
    const close = sender();
    const id = await create(url);
    await write("nodes/stopping");
    await until("it is asked", async () => (received.length > 0 ? true : undefined));
    await close();
    expect(await deliveryOf(id)).toMatchObject({ state: "pending", attempts: 0, lease_until: null });
    one.answer = () => 204;
    sender();
    await until("it is delivered", async () => ((await deliveryOf(id))?.state === "delivered" ? true : undefined));
    expect(new Set(received.map((request) => request.id)).size).toBe(1);
  });

  it("counts no attempt if the hub cannot read the webhook's secret, and does not show the secret's path", async () => {
    const { url, received } = await receiver();
    const id = await create(url);
    const place = SECRET_PATHS.webhookSecret(id);
    const kept = await api.secrets.read(place);
    await api.secrets.remove(place);
    sender();
    await write("nodes/sealed");
    const delivery = await until("an attempt", async () => {
      const row = await deliveryOf(id);
      return row?.last_error ? row : undefined;
    });
    expect(delivery).toMatchObject({ state: "pending", attempts: 0, lease_until: null });
    expect(delivery.last_error).not.toContain("kv/");
    await api.secrets.write(place, kept);
    await run("update webhook_deliveries set next_attempt_at = now()");
    await until("it is delivered", async () => (received.length > 0 ? true : undefined));
  });
});
