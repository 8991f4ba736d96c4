import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { until } from "../../support/until.ts";
import { HOOKS, newSecret, Receiver, signs, startSender, writeEvent } from "../../support/webhook-receiver.ts";

describe("webhooks", () => {
  let api: ApiHarness;
  const closers: (() => Promise<void> | void)[] = [];
  beforeAll(async () => {
    api = await startApi();
    // Two hubs with one database send the webhooks of the test.
    for (const sender of [startSender(api), startSender(api)]) closers.push(() => sender.close());
  });
  afterAll(async () => {
    for (const close of closers.splice(0).reverse()) await close();
    await api.close();
  });

  const writeProgress = (subject: string) =>
    api.database.database.pool.query(
      "insert into domain_events (type, subject, data) values ('operation.progressed', $1, '{}')",
      [subject],
    );
  const write = (subject: string) => writeEvent(api.database.database.inTx, subject);
  async function hook(fields: object = {}) {
    const receiver = new Receiver();
    const url = await receiver.start();
    closers.push(() => receiver.stop());
    const secret = newSecret();
    const created = await api.ask("POST", HOOKS, { url, secret, ...fields });
    expect(created.status).toBe(201);
    expect(JSON.stringify(created.body)).not.toContain(secret);
    return { receiver, secret, id: created.body.id as string };
  }
  const received = (receiver: Receiver, count: number) =>
    until(`${count} deliveries`, async () => (receiver.received.length >= count ? true : undefined), {
      timeoutMs: 30_000,
    });
  const retryNow = () =>
    api.database.database.pool.query("update webhook_deliveries set next_attempt_at = now() where state = 'pending'");
  const deliveries = async (id: string, query = "") =>
    (await api.ask("GET", `${HOOKS}/${id}/deliveries${query}`)).body.items;

  it("get each event once from two hubs, signed and with the event's own id", async () => {
    const { receiver, secret, id } = await hook();
    const names = Array.from({ length: 60 }, (_, index) => `nodes/once-${index}`);
    // The pattern `*` of this webhook leaves out frequent events, and a pattern that names them does not.
    await writeProgress("onboardings/frequent");
    await Promise.all(names.map(write));
    await received(receiver, names.length);
    expect(receiver.received.map((one) => one.subject).toSorted()).toEqual(names.toSorted());
    expect(new Set(receiver.received.map((one) => one.id)).size).toBe(names.length);
    for (const one of receiver.received) {
      expect(signs(secret, one)).toBe(true);
      expect(JSON.parse(one.body)).toMatchObject({ specversion: "1.0", id: one.id });
    }
    await until("all are recorded", async () =>
      (await deliveries(id, "?state=pending")).length === 0 ? true : undefined,
    );
    expect((await api.ask("DELETE", `${HOOKS}/${id}`)).status).toBe(204);
    expect((await api.ask("GET", `${HOOKS}/${id}`)).status).toBe(404);
  });

  it("get an event again with the same id until they accept it, and a hanging one delays no other", async () => {
    const slow = await hook();
    slow.receiver.answer = () => null;
    const flaky = await hook({ types: ["node.*", "operation.*"] });
    flaky.receiver.answer = (nth) => (nth < 4 ? 500 : 204);
    await write("nodes/flaky");
    await until("the fourth attempt", async () => {
      await retryNow();
      return flaky.receiver.received.length >= 4 ? true : undefined;
    });
    expect(new Set(flaky.receiver.received.map((one) => one.id)).size).toBe(1);
    const [delivery] = await until("it is delivered", async () => {
      const found = await deliveries(flaky.id, "?state=delivered");
      return found.length > 0 ? found : undefined;
    });
    expect(delivery).toMatchObject({ attempts: 4, last_status: 204, last_error: null, event_subject: "nodes/flaky" });
    await writeProgress("onboardings/named");
    await received(flaky.receiver, 5);
    expect(flaky.receiver.received.at(-1)?.subject).toBe("onboardings/named");
    await received(slow.receiver, 1);
    slow.receiver.answer = () => 204;
    for (const one of [slow, flaky]) await api.ask("DELETE", `${HOOKS}/${one.id}`);
  });

  it("keep finally failed deliveries, and replay one of them, all of them, or all events after a position", async () => {
    const { receiver, id } = await hook({ types: ["node.status.*"] });
    receiver.answer = () => 302;
    await write("nodes/dead");
    const [dead] = await until(
      "the last attempt",
      async () => {
        await retryNow();
        const found = await deliveries(id, "?state=dead");
        return found.length > 0 ? found : undefined;
      },
      { timeoutMs: 60_000 },
    );
    expect(dead).toMatchObject({ attempts: 10, last_status: 302, last_error: expect.stringContaining("302") });
    expect((await api.ask("GET", `${HOOKS}/${id}`)).body).toMatchObject({ dead: 1, active: true });
    receiver.answer = () => 200;
    const before = receiver.received.length;
    expect((await api.ask("POST", `${HOOKS}/${id}/replay`, { dead: true })).body).toEqual({ replayed: 1 });
    await received(receiver, before + 1);
    const [{ cursor: beginning } = { cursor: "" }] = (await api.ask("GET", "/api/v1/admin/events?limit=1")).body.items;
    await until("it is recorded", async () =>
      (await deliveries(id, "?state=delivered")).length > 0 ? true : undefined,
    );
    await api.ask("POST", `${HOOKS}/${id}/deliveries/${dead.id}/replay`);
    await received(receiver, before + 2);
    expect(new Set(receiver.received.map((one) => one.id)).size).toBe(1);
    expect((await api.ask("POST", `${HOOKS}/${id}/replay`, { cursor: beginning })).status).toBe(202);
    const { items } = (await api.ask("GET", `/api/v1/admin/events?limit=200&cursor=${beginning}`)).body;
    const all = items.filter((one: { type: string }) => one.type !== "operation.progressed");
    await received(receiver, before + 2 + all.length);
    await api.ask("DELETE", `${HOOKS}/${id}`);
  });

  it("are signed with both secrets during a rotation", async () => {
    const { receiver, secret, id } = await hook();
    const next = newSecret();
    expect(
      (await api.ask("POST", `${HOOKS}/${id}/rotate-secret`, { secret: next, overlap_seconds: 3600 })).status,
    ).toBe(200);
    await write("nodes/rotated");
    await received(receiver, 1);
    const [one] = receiver.received;
    if (one === undefined) throw new Error("nothing came");
    expect([signs(secret, one), signs(next, one)]).toEqual([true, true]);
    await api.ask("DELETE", `${HOOKS}/${id}`);
  });

  it("stop after a 410 or by an operator, and can be tested alone", async () => {
    const gone = await hook();
    gone.receiver.answer = () => 410;
    const other = await hook();
    expect((await api.ask("POST", `${HOOKS}/${gone.id}/test`)).status).toBe(202);
    const stopped = await until("it is disabled", async () => {
      const { body } = await api.ask("GET", `${HOOKS}/${gone.id}`);
      return body.active ? undefined : body;
    });
    expect(stopped.disabled_reason).toContain("410");
    await write("nodes/after-gone");
    await received(other.receiver, 1);
    expect(other.receiver.received.map((one) => one.subject)).toEqual(["nodes/after-gone"]);
    expect(gone.receiver.received).toHaveLength(1);
    for (const one of [gone, other]) await api.ask("DELETE", `${HOOKS}/${one.id}`);
  });

  it("are refused with an invalid secret or a password in the address, and no secret is in the database", async () => {
    const url = "https://receiver.example/hook";
    const refuse = async (body: object) => (await api.ask("POST", HOOKS, body)).problem.code;
    expect(await refuse({ url, secret: "whsec_short" })).toBe("validation_failed");
    expect(await refuse({ url: "https://ann:pw@receiver.example/", secret: newSecret() })).toBe("validation_failed");
    expect(await refuse({ url: "ftp://receiver.example/", secret: newSecret() })).toBe("validation_failed");
    expect(await refuse({ url, secret: newSecret(), types: ["node.exploded"] })).toBe("validation_failed");
    const { secret, id } = await hook({});
    const { pool } = api.database.database;
    const { rows } = await pool.query<{ table_name: string }>(
      "select table_name from information_schema.tables where table_schema = 'public'",
    );
    for (const { table_name } of rows) {
      const { rows: all } = await pool.query(`select * from ${table_name}`);
      expect(JSON.stringify(all, (_key, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
        secret,
      );
    }
    await api.ask("DELETE", `${HOOKS}/${id}`);
  });
});
