import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ensureAdminToken } from "../../../hub/http/admin-token.ts";
import { MOST_TOKEN_DAYS } from "../../../shared/api/tokens.ts";
import { type Answer, type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { commandLine } from "../../support/command-line.ts";
import { createTestDatabase } from "../../support/database.ts";
import { until } from "../../support/until.ts";
import { loadRecord, readRecord } from "../../upgrade/load-record.ts";

const TOKENS = "/api/v1/admin/tokens";
const NODES = "/api/v1/admin/nodes";
const REASON = { reason: "a test" };
const as = (token: string) => ({ authorization: `Bearer ${token}` });

describe("tokens", () => {
  let api: ApiHarness;
  let siteId: string;
  let otherSite: string;
  let folder: string;
  beforeAll(async () => {
    api = await startApi();
    siteId = (await seedApi(api, "dc1")).siteId;
    otherSite = (await seedApi(api, "dc2")).siteId;
    folder = mkdtempSync(join(tmpdir(), "muster-tokens-"));
  });
  afterAll(async () => {
    await api?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const query = (text: string, values: unknown[] = []) => api.database.database.pool.query(text, values);
  async function make(name: string, more: object = {}): Promise<{ id: string; token: string }> {
    const answer = await api.ask("POST", TOKENS, { name, role: "viewer", expires_in_days: 1, ...more });
    expect(answer.status, JSON.stringify(answer.problem)).toBe(201);
    return answer.body;
  }
  const statusFor = async (token: string): Promise<number> =>
    (await api.ask("GET", NODES, undefined, as(token))).status;
  const post = (path: string, body: object, token = api.admin): Promise<Answer> =>
    api.ask("POST", path, body, as(token));
  const eventsOf = async (id: string): Promise<string[]> =>
    (
      await query("select data ->> 'change' as c from domain_events where subject = $1 order by seq", [`tokens/${id}`])
    ).rows.map(({ c }) => c);

  it("are shown once, stored as a hash, and named by their last letters", async () => {
    const { id, token } = await make("shown");
    expect(token).toMatch(/^mstr_api_[0-9A-Za-z]{49}$/);
    expect(await statusFor(token)).toBe(200);
    const rows = JSON.stringify((await query("select * from api_tokens")).rows);
    expect(rows).not.toContain(token);
    const listed = (await api.ask("GET", `${TOKENS}?name=shown`)).body.items;
    expect(listed).toHaveLength(1);
    expect(listed[0]).toMatchObject({
      id,
      role: "viewer",
      status: "valid",
      last_four: token.slice(-4),
      created_by: "admin",
    });
    expect(JSON.stringify(listed)).not.toContain(token);
    const audit = JSON.stringify((await query("select * from audit_logs")).rows);
    expect(audit).toContain("createToken");
    expect(audit).not.toContain(token);
    expect(await eventsOf(id)).toEqual(["created"]);
    expect((await post(TOKENS, { name: "shown", role: "viewer", expires_in_days: 1 })).problem.code).toBe("name_taken");
  });

  it("always expire, and stop working when they do", async () => {
    for (const days of [undefined, 0, MOST_TOKEN_DAYS + 1, null])
      expect((await post(TOKENS, { name: "endless", role: "viewer", expires_in_days: days })).status).toBe(400);
    const { id, token } = await make("expiring");
    expect(await statusFor(token)).toBe(200);
    await query("update api_tokens set expires_at = now() where id = $1", [id]);
    expect(await statusFor(token)).toBe(401);
    expect((await api.ask("GET", `${TOKENS}/${id}`)).body.status).toBe("expired");
    expect((await post(`${TOKENS}/${id}/rotate`, { expires_in_days: 1 })).problem.code).toBe("conflict");
  });

  it("keep the old secret for the overlap of a rotation, and no longer", async () => {
    const { id, token } = await make("rotated");
    const rotated = (await post(`${TOKENS}/${id}/rotate`, { expires_in_days: 2, overlap_seconds: 600 })).body;
    expect(rotated.token).not.toBe(token);
    expect([await statusFor(token), await statusFor(rotated.token)]).toEqual([200, 200]);
    await query("update api_tokens set previous_until = now() where id = $1", [id]);
    expect([await statusFor(token), await statusFor(rotated.token)]).toEqual([401, 200]);
    const now = (await post(`${TOKENS}/${id}/rotate`, { expires_in_days: 2, overlap_seconds: 0 })).body;
    expect([await statusFor(rotated.token), await statusFor(now.token)]).toEqual([401, 200]);
    expect(await eventsOf(id)).toEqual(["created", "rotated", "rotated"]);
  });

  it("end at once when they are revoked, with both secrets of a rotation", async () => {
    const { id, token } = await make("revoked");
    const { token: second } = (await post(`${TOKENS}/${id}/rotate`, { expires_in_days: 2 })).body;
    expect([await statusFor(token), await statusFor(second)]).toEqual([200, 200]);
    const revoked = await post(`${TOKENS}/${id}/revoke`, REASON);
    expect(revoked.body).toMatchObject({ status: "revoked", name: "revoked" });
    expect([await statusFor(token), await statusFor(second)]).toEqual([401, 401]);
    expect((await post(`${TOKENS}/${id}/revoke`, REASON)).body.revoked_at).toBe(revoked.body.revoked_at);
    expect(await eventsOf(id)).toEqual(["created", "rotated", "revoked"]);
  });

  it.each([
    ["revoked", (id: string) => post(`${TOKENS}/${id}/revoke`, REASON)],
    ["expired", (id: string) => query("update api_tokens set expires_at = now() where id = $1", [id])],
  ])("end their open event streams when they are %s", async (how, end) => {
    const { id, token } = await make(`streaming-${how}`);
    const response = await fetch(`${await api.listen()}/api/v1/admin/events/stream`, { headers: as(token) });
    expect(response.status).toBe(200);
    let text = "";
    let ended = false;
    const read = (async () => {
      for await (const chunk of response.body ?? []) text += new TextDecoder().decode(chunk);
      ended = true;
    })();
    const seen = await make(`seen-${how}`);
    await until("an event of the valid token's stream", async () => (text.includes(seen.id) ? true : undefined));
    await end(id);
    const late = await make(`late-${how}`);
    await until("the end of the stream", async () => (ended ? true : undefined));
    await read;
    expect(text).not.toContain(late.id);
  });

  it("say when they were used, at most once a minute", async () => {
    const { id, token } = await make("used");
    const lastUse = async () => (await api.ask("GET", `${TOKENS}/${id}`)).body.last_used_at;
    expect(await lastUse()).toBeNull();
    await statusFor(token);
    const first = await until("the first use", async () => (await lastUse()) ?? undefined);
    for (let n = 0; n < 5; n += 1) await statusFor(token);
    expect(await lastUse()).toBe(first);
    await query("update api_tokens set last_used_at = now() - interval '61 seconds' where id = $1", [id]);
    const older = await lastUse();
    await statusFor(token);
    await until("a later use", async () => ((await lastUse()) > older ? true : undefined));
  });

  it("with a wrong checksum are refused, like unknown tokens", async () => {
    const { token } = await make("copied");
    const wrong = `${token.slice(0, -1)}${token.endsWith("a") ? "b" : "a"}`;
    const answers = [
      await api.ask("GET", NODES, undefined, as(wrong)),
      await api.ask("GET", NODES, undefined, as("x")),
    ];
    expect(answers.map(({ status }) => status)).toEqual([401, 401]);
    expect(answers[0]?.problem.detail).toBe(answers[1]?.problem.detail);
  });

  it("of an admin of one site give nobody more than that site", async () => {
    const admin = (await make("admin-of-dc1", { role: "admin", site_ids: [siteId] })).token;
    const wide = await make("wide", { role: "admin" });
    const foreign = await make("foreign", { role: "viewer", site_ids: [siteId, otherSite] });
    const ask = (name: string, more: object) =>
      post(TOKENS, { name, role: "admin", expires_in_days: 1, ...more }, admin);
    expect((await ask("a", {})).problem.code).toBe("forbidden");
    expect((await ask("a", { site_ids: null })).status).toBe(400);
    expect((await ask("a", { site_ids: [] })).status).toBe(400);
    expect((await ask("a", { site_ids: [otherSite] })).problem.code).toBe("not_found");
    expect((await ask("a", { site_ids: [siteId, otherSite] })).problem.code).toBe("not_found");
    const made = await ask("a-of-dc1", { site_ids: [siteId] });
    expect(made.status).toBe(201);
    for (const { id } of [wide, foreign]) {
      expect((await api.ask("GET", `${TOKENS}/${id}`, undefined, as(admin))).status).toBe(404);
      expect((await post(`${TOKENS}/${id}/rotate`, { expires_in_days: 1 }, admin)).status).toBe(404);
      expect((await post(`${TOKENS}/${id}/revoke`, REASON, admin)).status).toBe(404);
    }
    const names = (await api.ask("GET", TOKENS, undefined, as(admin))).body.items.map(
      ({ name }: { name: string }) => name,
    );
    expect(names).toEqual(["a-of-dc1", "admin-of-dc1"]);
    expect((await post(`${TOKENS}/${made.body.id}/revoke`, REASON, admin)).status).toBe(200);
  });

  it("have a tenant exactly if their role is that of a tenant, and name sites that exist", async () => {
    const nowhere = "00000000-0000-4000-8000-000000000000";
    for (const [role, tenant, code] of [
      ["tenant", null, "validation_failed"],
      ["repair", null, "validation_failed"],
      ["viewer", "acme", "validation_failed"],
    ]) {
      const answer = await post(TOKENS, { name: "t", role, tenant, expires_in_days: 1 });
      expect([role, answer.problem.code]).toEqual([role, code]);
    }
    await make("of-acme", { role: "tenant", tenant: "acme" });
    const unknown = await post(TOKENS, { name: "t", role: "viewer", site_ids: [nowhere], expires_in_days: 1 });
    expect(unknown.problem.code).toBe("reference_unknown");
  });

  it("are made, listed, rotated and revoked by the command line", async () => {
    const run = commandLine({ api, url: await api.listen(), cwd: folder });
    const created = await run([
      "create-token",
      "--name",
      "by-cli",
      "--role",
      "operator",
      "--site-ids",
      "dc1",
      "--expires-in-days",
      "30",
      "--output",
      "json",
    ]);
    expect(created, created.stderr).toMatchObject({ exitCode: 0 });
    const { token } = JSON.parse(created.stdout);
    expect(await statusFor(token)).toBe(200);
    const listed = await run(["list-tokens", "--role", "operator"]);
    expect(listed.stdout).toContain("by-cli");
    const rotated = await run([
      "rotate-token",
      "by-cli",
      "--overlap-seconds",
      "0",
      "--expires-in-days",
      "30",
      "--output",
      "json",
    ]);
    expect(rotated, rotated.stderr).toMatchObject({ exitCode: 0 });
    expect(await statusFor(token)).toBe(401);
    const revoked = await run(["revoke-token", "by-cli", "--reason", "no longer needed"]);
    expect(revoked, revoked.stderr).toMatchObject({ exitCode: 0 });
    expect(await statusFor(JSON.parse(rotated.stdout).token)).toBe(401);
  });
});

describe("the first token", () => {
  let api: ApiHarness;
  let file: string;
  beforeAll(async () => {
    api = await startApi();
    file = api.adminTokenFile;
  });
  afterAll(() => api?.close());

  it("is retired by another admin, stays retired, and comes back by a file beside it; its use is told", async () => {
    const { inTx, pool } = api.database.database;
    const firstId = (await api.ask("GET", `${TOKENS}?name=admin`)).body.items[0].id;
    const revoke = (token: string) => api.ask("POST", `${TOKENS}/${firstId}/revoke`, REASON, as(token));
    const changes = async () =>
      (
        await pool.query("select data ->> 'change' as c from domain_events where subject = $1 order by seq", [
          `tokens/${firstId}`,
        ])
      ).rows.map(({ c }) => c);
    expect((await revoke(api.admin)).problem.detail).toContain("cannot retire itself");
    expect((await api.ask("POST", `${TOKENS}/${firstId}/rotate`, { expires_in_days: 1 })).problem.code).toBe(
      "conflict",
    );
    const body = { name: "ann", role: "admin", expires_in_days: 30 };
    const ann = (await api.ask("POST", TOKENS, body)).body.token;
    expect(await changes(), "no use is told while the first token is the only admin token").toEqual([]);
    await pool.query("update api_tokens set last_used_at = now() - interval '2 hours' where id = $1", [firstId]);
    await api.ask("GET", NODES);
    await until("the use of the first token is told", async () => ((await changes()).length > 0 ? true : undefined));
    expect((await revoke(ann)).status).toBe(200);
    expect((await api.ask("GET", NODES)).status).toBe(401);
    expect(existsSync(file)).toBe(false);
    await ensureAdminToken(inTx, file);
    expect(existsSync(file)).toBe(false);
    writeFileSync(file, `${api.admin}\n`);
    await ensureAdminToken(inTx, file);
    expect(existsSync(file), "a copy of a retired token is removed").toBe(false);
    writeFileSync(`${file}.restore`, "");
    await ensureAdminToken(inTx, file);
    expect(existsSync(`${file}.restore`)).toBe(false);
    const again = readFileSync(file, "utf8").trim();
    expect((await api.ask("GET", NODES, undefined, as(again))).status).toBe(200);
    expect((await api.ask("GET", NODES)).status).toBe(401);
    expect(await changes()).toEqual(["used", "revoked", "restored"]);
    const { rows } = await pool.query(
      "select action from audit_logs where target = $1 and outcome = 'done' order by id",
      [`tokens/${firstId}`],
    );
    expect(rows.map(({ action }) => action)).toEqual(["revokeToken", "restoreFirstToken"]);
  });
});

describe("the tokens of an older version", () => {
  it("stay valid after the upgrade, for the whole hub and without an expiry", async () => {
    const database = await createTestDatabase();
    try {
      // The newest record from before tokens had limits, an expiry and a list of those who know them.
      const newest = readRecord("0.2.0-0046.json.br");
      const tokens = (["admin", "viewer"] as const).map((role) => ({
        id: randomUUID(),
        created_at: new Date().toISOString(),
        name: `old ${role}`,
        role,
        token_sha256: `of ${role}`,
      }));
      await loadRecord(database, { ...newest, tables: { ...newest.tables, api_tokens: tokens } });
      const { rows } = await database.database.pool.query(
        "select role, sites, tenant, expires_at, revoked_at from api_tokens where name like 'old %' order by role",
      );
      const whole = { sites: null, tenant: null, expires_at: null, revoked_at: null };
      expect(rows).toEqual([
        { role: "admin", ...whole },
        { role: "viewer", ...whole },
      ]);
    } finally {
      await database.drop();
    }
  });
});
