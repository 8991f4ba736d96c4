import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordPoll } from "../../../hub/db/queries/maas-site-watches.ts";
import { SiteClients } from "../../../hub/maas/site-clients.ts";
import { SECRET_PATHS } from "../../../hub/secrets/port.ts";
import { siteClient } from "../../../hub/startup/site-services.ts";
import { startWatcher } from "../../../hub/watcher/watcher.ts";
import { startOnboarding } from "../../../hub/workflows/onboarding/start-onboarding.ts";
import { OnboardingCreate } from "../../../shared/api/onboardings.ts";
import { SiteId } from "../../../shared/ids.ts";
import { type ApiHarness, GOOD_PROBE, seedApi, siteBody, startApi } from "../../support/api-harness.ts";
import { bindNode } from "../../support/bound-node.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

const SITES = "/api/v1/admin/maas-sites";

/** The hub stores a MAAS token only together with the address at which it has tried the token (lifecycle 3.5). */
describe("a site that moves to another address", () => {
  const other = (name: string): string => `http://other-${name}.example:5240/MAAS`;
  let api: ApiHarness;
  let heard: string[] = [];
  let listener: Server;
  let elsewhere = "";
  const tried: string[] = [];
  let whileTried: () => Promise<unknown> = async () => undefined;
  beforeAll(async () => {
    api = await startApi({
      probe: async ({ site }) => {
        tried.push(site.apiBaseUrl);
        await whileTried();
        return GOOD_PROBE;
      },
    });
    listener = createServer((request, response) => {
      heard.push(request.headers.authorization ?? "");
      response.writeHead(503).end();
    });
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    elsewhere = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/MAAS`;
  });
  afterAll(async () => {
    await api.close();
    await new Promise((resolve) => listener.close(resolve));
  });

  const sql = async (text: string, values: unknown[]) =>
    (await api.database.database.pool.query(text, values)).rows as Record<string, unknown>[];
  const withToken = async (name: string): Promise<SiteId> => {
    const siteId = SiteId.parse((await seedApi(api, name)).siteId);
    const secrets = { maas_token: "a:b:c", power: { user: "root", pass: "pw" } };
    expect((await api.ask("POST", `${SITES}/${siteId}/credentials`, secrets)).status).toBe(200);
    return siteId;
  };
  const patch = async (siteId: SiteId, body: unknown) => {
    const etag = (await api.ask("GET", `${SITES}/${siteId}`)).headers.get("etag") ?? "";
    return api.ask("PATCH", `${SITES}/${siteId}`, body, { "if-match": etag });
  };
  const storedToken = (siteId: SiteId) =>
    api.secrets.read(SECRET_PATHS.maasToken(siteId)).catch((error: unknown) => (error as { code: string }).code);
  const watchOf = async (siteId: SiteId) =>
    (await sql("select * from maas_site_watches where site_id = $1", [siteId]))[0];
  const seenMachines = async (siteId: SiteId) =>
    (await sql("select system_id from maas_machines where site_id = $1", [siteId])).length;
  const watched = async (siteId: SiteId) => {
    await sql(
      `insert into maas_site_watches (site_id, fence, event_cursor, last_poll_at, last_sweep_at, consecutive_failures, last_error_code)
       values ($1, 7, 4711, now(), now(), 2, 'unreachable')`,
      [siteId],
    );
    await sql(
      `insert into maas_machines (site_id, system_id, hostname, status, status_name, status_message, error_description, power_state, locked, ip_addresses)
       values ($1, 'abc123', 'c07u31', 4, 'Ready', '', '', 'off', false, '{}')`,
      [siteId],
    );
  };
  const work = async (siteId: SiteId, status: string) => {
    const id = randomUUID();
    await sql(
      "insert into workflows (id, kind, status, site_id, stage, input) values ($1, 'onboard', $2, $3, 'commission_node', '{}')",
      [id, status, siteId],
    );
    return id;
  };

  it("loses its token, which is sent to no untried address, and accepts a new token tried there", async () => {
    const siteId = await withToken("moves");
    heard = [];
    const moved = await patch(siteId, { api_base_url: elsewhere });
    expect(moved.body).toMatchObject({
      api_base_url: elsewhere,
      credentials: { maas_token: false, power: true, deploy_password: false },
    });
    expect(await storedToken(siteId)).toBe("secret_missing");
    expect((await api.ask("POST", `${SITES}/${siteId}/probe`)).problem.code).toBe("site_unusable");
    const [audit] = await sql("select details from audit_logs where target = $1 and action = 'updateMaasSite'", [
      `maas-sites/${siteId}`,
    ]);
    expect(audit?.["details"]).toEqual({ api_base_url: elsewhere, removed: ["maas_token"] });
    const { db, inTx } = api.database.database;
    const client = siteClient(db, api.secrets, new SiteClients());
    const watcher = startWatcher({
      db,
      inTx,
      hubId: randomUUID(),
      clientFor: client,
      log: quietLog,
      pollIntervalMs: 20,
      sweepIntervalMs: 3_600_000,
    });
    try {
      const failed = async () => ((await watchOf(siteId))?.["last_error_code"] === "secret_missing" ? true : undefined);
      await until("the watcher to miss the token", failed);
    } finally {
      await watcher.close();
    }
    expect(heard).toEqual([]);
    const again = await api.ask("POST", `${SITES}/${siteId}/credentials`, { maas_token: "d:e:f" });
    expect(again.body.credentials.maas_token).toBe(true);
    expect(tried.at(-1)).toBe(elsewhere);
    await (await client(siteId)).whoami().catch(() => undefined);
    expect(heard[0]).toContain('oauth_token="e"');
    for (const authorization of heard) expect(authorization).not.toContain('oauth_token="b"');
  });

  it("is watched from the start, and stores no result of a poll of the old region", async () => {
    const siteId = await withToken("anew");
    const neighbour = await withToken("neighbour");
    for (const id of [siteId, neighbour]) {
      await watched(id);
      await sql(
        "insert into maas_roce_links (site_id, maas_system_id, interface, ip_address) values ($1, 'abc', 'ens1', '172.30.0.1')",
        [id],
      );
    }
    expect((await patch(siteId, { api_base_url: other("anew") })).status).toBe(200);
    expect(await sql("select site_id from maas_roce_links", [])).toEqual([{ site_id: neighbour }]);
    expect(await watchOf(siteId)).toMatchObject({
      fence: "8",
      event_cursor: null,
      last_poll_at: null,
      last_sweep_at: null,
      consecutive_failures: 0,
      last_error_code: null,
    });
    expect(await seenMachines(siteId)).toBe(0);
    const look = {
      place: { cursor: 4712, mark: null },
      hasRead: true,
      startsAnew: false,
      sweptForMs: 5,
      wakeAnswered: null,
      sweepAnswered: null,
      unreadable: null,
      clearsError: true,
    };
    expect(await api.database.database.inTx((tx) => recordPoll(tx, siteId, 7, look))).toBe(false);
    expect(await watchOf(neighbour)).toMatchObject({ fence: "7", event_cursor: "4711" });
    expect(await seenMachines(neighbour)).toBe(1);
  });

  it("cannot be a metadata service or a link-local address, on creation, change or move", async () => {
    const siteId = await withToken("forbidden");
    const there = "http://169.254.169.254/MAAS";
    const move = { api_base_url: there, maas_token: "a:b:c", reason: "r" };
    const before = tried.length;
    for (const refused of [
      await api.ask("POST", `${SITES}/${siteId}/move`, move),
      await patch(siteId, { api_base_url: there }),
      await api.ask("POST", SITES, { ...siteBody("link"), api_base_url: "http://[fe80::1]:5240/MAAS" }),
    ])
      expect(refused.problem).toMatchObject({ code: "validation_failed", errors: [{ pointer: "/api_base_url" }] });
    expect(tried.slice(before)).toEqual([]);
  });

  it("keeps everything if the address stays the same", async () => {
    const siteId = await withToken("stays");
    await watched(siteId);
    await work(siteId, "running");
    const same = await patch(siteId, { api_base_url: siteBody("stays").api_base_url, region_code: "r2" });
    expect(same.body).toMatchObject({ region_code: "r2", credentials: { maas_token: true } });
    expect(await storedToken(siteId)).toEqual({ token: "a:b:c" });
    expect(await watchOf(siteId)).toMatchObject({ fence: "7", event_cursor: "4711" });
    expect(await seenMachines(siteId)).toBe(1);
  });

  it("does not move while it has nodes or unfinished work, and says so", async () => {
    const siteId = await withToken("busy");
    await watched(siteId);
    const nodeId = await bindNode(api.database, siteId, { hostname: "c07u31", status: "retired" });
    const refused = await patch(siteId, { api_base_url: other("busy"), region_code: "r2" });
    expect(refused.status).toBe(409);
    expect(refused.problem).toMatchObject({
      code: "conflict",
      errors: [{ pointer: "/api_base_url" }],
      context: { bound_nodes: "1", unfinished_workflows: "0" },
    });
    expect(refused.problem.detail).toMatch(/remove those nodes.*or create a site of its own for the other region/);
    await sql("update nodes set status = 'deleted' where id = $1", [nodeId]);
    for (const status of ["pending", "running", "compensating", "failed_retryable", "failed_manual_intervention"]) {
      const id = await work(siteId, status);
      const { problem } = await patch(siteId, { api_base_url: other("busy") });
      expect(problem).toMatchObject({ code: "conflict", context: { bound_nodes: "0", unfinished_workflows: "1" } });
      await sql("update workflows set status = 'cancelled' where id = $1", [id]);
    }
    const kept = (await api.ask("GET", `${SITES}/${siteId}`)).body;
    expect(kept).toMatchObject({
      api_base_url: siteBody("busy").api_base_url,
      region_code: "r1",
      credentials: { maas_token: true },
    });
    expect(await storedToken(siteId)).toEqual({ token: "a:b:c" });
    expect(await watchOf(siteId)).toMatchObject({ fence: "7", event_cursor: "4711" });
    expect(await seenMachines(siteId)).toBe(1);
    for (const status of ["completed", "reconciled"]) await work(siteId, status);
    expect((await patch(siteId, { api_base_url: other("busy") })).status).toBe(200);
  });

  it("does not move while an onboarding is being accepted", async () => {
    const siteId = await withToken("accepting");
    const { default_profile_id } = (await api.ask("GET", `${SITES}/${siteId}`)).body;
    const request = OnboardingCreate.parse({
      site_id: siteId,
      profile_id: default_profile_id,
      sku_id: "sku-accepting",
      hostname: "c07u31",
      ipmi_ip: "10.0.0.1",
    });
    const moving = await api.database.database.inTx(async (tx) => {
      await startOnboarding(tx, { request, requestedBy: "admin" });
      const asked = { answer: patch(siteId, { api_base_url: other("accepting") }) };
      await until("the change to wait", async () =>
        (await sql("select from pg_locks where not granted", [])).length > 0 ? true : undefined,
      );
      return asked;
    });
    expect((await moving.answer).problem.context).toEqual({ bound_nodes: "0", unfinished_workflows: "1" });
  });

  it("stores no token that was tried at the old address during the move", async () => {
    const siteId = await withToken("between");
    whileTried = async () => {
      whileTried = async () => undefined;
      expect((await patch(siteId, { api_base_url: other("between") })).status).toBe(200);
    };
    const { problem } = await api.ask("POST", `${SITES}/${siteId}/credentials`, { maas_token: "g:h:i" });
    expect(problem).toMatchObject({ code: "conflict", status: 409 });
    expect(problem.detail).toContain(`tried at ${siteBody("between").api_base_url}`);
    expect((await api.ask("GET", `${SITES}/${siteId}`)).body.credentials.maas_token).toBe(false);
    expect(await storedToken(siteId)).toBe("secret_missing");
  });
});
