import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../../hub/db/client.ts";
import { fanOut } from "../../../hub/db/queries/webhook-fan-out.ts";
import { SECRET_PATHS } from "../../../hub/secrets/port.ts";
import { type ApiHarness, SITE_BODY, startApi } from "../../support/api-harness.ts";
import { quietLog } from "../../support/log.ts";
import { HOOKS, newSecret, writeEvent } from "../../support/webhook-receiver.ts";

const POOL = 3;

describe("the API of webhooks", () => {
  let api: ApiHarness;
  beforeAll(async () => {
    const timeouts = { connectMs: 5_000 };
    api = await startApi({
      open: async (url) => openDatabase({ url, poolSize: POOL, applicationName: "small", log: quietLog, timeouts }),
    });
  });
  afterAll(() => api.close());

  const write = (subject: string) => writeEvent(api.database.database.inTx, subject);
  const url = "https://hooks.example/services/T0/s3cr3t-path?key=s3cr3t-query";
  async function create(fields: object = {}) {
    const secret = newSecret();
    const created = await api.ask("POST", HOOKS, { url, secret, ...fields });
    expect(created.status).toBe(201);
    const id = created.body.id as string;
    const keep = () => api.secrets.read(SECRET_PATHS.webhookSecret(id));
    const rotate = (next: string, overlap_seconds: number) =>
      api.ask("POST", `${HOOKS}/${id}/rotate-secret`, { secret: next, overlap_seconds });
    return { id, path: `${HOOKS}/${id}`, secret, keep, rotate };
  }
  const cursorOf = (position: string) => Buffer.from(JSON.stringify([position])).toString("base64url");

  it("changes a webhook that is unchanged since it was read, even if events came meanwhile", async () => {
    const { db, inTx } = api.database.database;
    const { path } = await create();
    const etag = (await api.ask("GET", path)).headers.get("etag") ?? "";
    await write("nodes/meanwhile");
    expect(await fanOut(db, inTx)).toBe(true);
    const changed = await api.ask("PATCH", path, { description: "mine" }, { "if-match": etag });
    expect([changed.status, changed.body.description, changed.body.pending]).toEqual([200, "mine", 1]);
    const late = await api.ask("PATCH", path, { description: "other" }, { "if-match": etag });
    expect(late.problem.code).toBe("precondition_failed");
    const next = { "if-match": changed.headers.get("etag") ?? "" };
    expect((await api.ask("PATCH", path, { active: false }, next)).status).toBe(200);
  });

  it("shortens the overlap of a rotation when the same secret is sent with a shorter overlap", async () => {
    const { secret, keep, rotate } = await create();
    const next = newSecret();
    await rotate(next, 86_400);
    const { previous_until: until } = await keep();
    await rotate(next, 604_800);
    expect(await keep()).toEqual({ secret: next, previous: secret, previous_until: until });
    expect((await rotate(next, 0)).status).toBe(200);
    expect(new Date((await keep())["previous_until"] ?? "").getTime()).toBeLessThanOrEqual(Date.now());
  });

  it("keeps both secrets of two concurrent rotations, one of them as the previous secret", async () => {
    const { keep, rotate } = await create();
    const secrets = [newSecret(), newSecret()];
    const answers = await Promise.all(secrets.map((secret) => rotate(secret, 3600)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const { secret, previous } = await keep();
    expect([secret, previous].toSorted()).toEqual(secrets.toSorted());
  });

  it("returns the number of events of a replay, and needs no second database connection", async () => {
    const { path } = await create({ types: ["node.status.*"] });
    await write("nodes/first");
    const { items } = (await api.ask("GET", "/api/v1/admin/events?limit=200")).body;
    for (const name of ["nodes/second", "nodes/third"]) await write(name);
    const cursor = items.at(-1).cursor;
    const replays = Array.from({ length: POOL * 2 }, () => api.ask("POST", `${path}/replay`, { cursor }));
    for (const { status, body } of await Promise.all(replays)) expect([status, body]).toEqual([202, { replayed: 2 }]);
    await api.ask("POST", `${HOOKS}/${(await create()).id}/test`);
    expect((await api.ask("POST", `${path}/replay`, { cursor })).body).toEqual({ replayed: 2 });
    expect((await api.ask("POST", `${path}/test`)).status).toBe(202);
    expect((await api.ask("POST", `${path}/replay`, { cursor })).body).toEqual({ replayed: 3 });
    const beyond = { cursor: cursorOf("999999999999") };
    expect((await api.ask("POST", `${path}/replay`, beyond)).problem.code).toBe("position_gone");
    expect((await api.ask("GET", `/api/v1/admin/events?cursor=${beyond.cursor}`)).problem.code).toBe("position_gone");
  });

  it("keeps the secret if a delete fails, and removes it after a delete", async () => {
    const { pool } = api.database.database;
    const { path, secret, keep } = await create();
    await pool.query(
      "create function refuse() returns trigger language plpgsql as 'begin raise exception ''no''; end'",
    );
    await pool.query("create trigger refuse before insert on audit_logs for each row execute function refuse()");
    expect((await api.ask("DELETE", path)).status).toBe(500);
    await pool.query("drop trigger refuse on audit_logs");
    expect((await api.ask("GET", path)).status).toBe(200);
    expect(await keep()).toEqual({ secret });
    expect((await api.ask("DELETE", path)).status).toBe(204);
    await expect(keep()).rejects.toMatchObject({ code: "secret_missing" });
  });

  it("lists page by page, also webhooks that were created at the same moment", async () => {
    for (let n = 0; n < 5; n += 1) await create({ types: ["webhook.tested"] });
    const { pool } = api.database.database;
    await pool.query("update webhooks set created_at = '2026-01-01T00:00:00.123456Z' where types = '{webhook.tested}'");
    const { rows } = await pool.query<{ id: string }>("select id from webhooks order by created_at, id");
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const next: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const { body } = await api.ask("GET", `${HOOKS}?limit=2${next}`);
      expect(body.items.length).toBeLessThanOrEqual(2);
      seen.push(...body.items.map(({ id }: { id: string }) => id));
      cursor = body.next_cursor;
    }
    expect(seen).toEqual(rows.map(({ id }) => id));
    const foreign = await api.ask("GET", `${HOOKS}?cursor=${cursorOf("1")}`);
    expect(foreign.problem.errors?.[0]?.pointer).toBe("/cursor");
  });

  it("refuses the hub's own address for a webhook and for a region, on creation and change", async () => {
    const { port } = new URL(await api.listen());
    const { path } = await create();
    for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"]) {
      const own = `http://${host}:${port}/`;
      const etag = (await api.ask("GET", path)).headers.get("etag") ?? "";
      const answers = [
        await api.ask("POST", HOOKS, { url: own, secret: newSecret() }),
        await api.ask("PATCH", path, { url: own }, { "if-match": etag }),
        await api.ask("POST", "/api/v1/admin/maas-sites", { ...SITE_BODY, api_base_url: `${own}MAAS` }),
      ];
      for (const { problem } of answers)
        expect(problem).toMatchObject({
          code: "validation_failed",
          detail: expect.stringContaining("this hub itself"),
        });
    }
  });

  it("refuses to test a stopped webhook", async () => {
    const { path } = await create();
    const etag = (await api.ask("GET", path)).headers.get("etag") ?? "";
    expect((await api.ask("PATCH", path, { active: false }, { "if-match": etag })).status).toBe(200);
    expect((await api.ask("POST", `${path}/test`)).problem.code).toBe("conflict");
  });

  it("shows the path and query of an address only to administrators, and not in the audit", async () => {
    const { path } = await create();
    const etag = (await api.ask("GET", path)).headers.get("etag") ?? "";
    await api.ask("PATCH", path, { url: `${url}2` }, { "if-match": etag });
    const viewer = { authorization: `Bearer ${api.viewer}` };
    expect((await api.ask("GET", path)).body.url).toBe(`${url}2`);
    expect((await api.ask("GET", path, undefined, viewer)).body.url).toBe("https://hooks.example");
    const list = (await api.ask("GET", HOOKS, undefined, viewer)).body.items;
    const { rows } = await api.database.database.pool.query("select details from audit_logs");
    expect(JSON.stringify([list, rows])).not.toContain("s3cr3t");
    expect(JSON.stringify(rows)).toContain("https://hooks.example");
  });

  it.each([
    ["a secret of 33 letters, which is no base64", { secret: `whsec_${"A".repeat(33)}` }],
    ["a secret of 23 bytes", { secret: `whsec_${Buffer.alloc(23).toString("base64")}` }],
    ["a secret of 65 bytes", { secret: `whsec_${Buffer.alloc(65).toString("base64")}` }],
    ["a link-local address", { url: "http://169.254.169.254/latest/meta-data" }],
    ["the port of a service that speaks no HTTP", { url: "http://receiver.example:22/" }],
  ])("refuses %s", async (_what, fields) => {
    const refused = await api.ask("POST", HOOKS, { url, secret: newSecret(), ...fields });
    expect(refused.problem).toMatchObject({ status: 400, code: "validation_failed" });
    const [field] = Object.keys(fields);
    expect(refused.problem.errors?.[0]?.pointer).toBe(`/${field}`);
  });
});
