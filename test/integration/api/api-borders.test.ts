import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FailedLogins } from "../../../hub/http/failed-logins.ts";
import { ROUTES } from "../../../hub/http/routes/index.ts";
import { RIGHTS_OF } from "../../../shared/api/rights.ts";
import { SiteId } from "../../../shared/ids.ts";
import type { Log } from "../../../shared/log.ts";
import { addSchedulableNode, SSH_KEY } from "../../support/allocatable-node.ts";
import { type ApiHarness, SITE_BODY, seedApi, siteBody, startApi } from "../../support/api-harness.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

const SITES = "/api/v1/admin/maas-sites";
/** A text that a test sends as an API token and that the hub has never issued. */
const TRIED = "guessed-token-that-nobody-has-0123456789";
const filled = (path: string): string => path.replace(/\{\w+\}/g, "00000000-0000-4000-8000-000000000000");

describe("the borders of the admin API", () => {
  let api: ApiHarness;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  // The test of failed logins runs first, because the hub reports failed logins of an address only once a minute.
  it("reports unknown tokens once a minute per address, in log and audit, without the tokens themselves", async () => {
    const { pool } = api.database.database;
    const audited = async () =>
      (await pool.query("select target, details, actor from audit_logs where action = 'loginFailed'")).rows;
    const noted: { address: string; attempts: number }[] = [];
    const time = { now: 0 };
    const log = { ...quietLog, warn: (_what: string, about: object = {}) => void noted.push(about as never) } as Log;
    const failed = new FailedLogins({ inTx: api.database.database.inTx, log }, () => time.now);
    for (let n = 0; n < 50; n += 1) failed.note({ address: "10.0.0.9", operationId: "listNodes", requestId: "r" });
    failed.note({ address: "10.0.0.10", operationId: "listNodes", requestId: "r" });
    time.now += 61_000;
    failed.note({ address: "10.0.0.9", operationId: "listNodes", requestId: "r" });
    expect(noted.map(({ address, attempts }) => [address, attempts])).toEqual([
      ["10.0.0.9", 1],
      ["10.0.0.10", 1],
      ["10.0.0.9", 50],
    ]);
    const burst: number[] = [];
    const counting = {
      ...quietLog,
      warn: (_what: string, about: object = {}) => void burst.push((about as { attempts: number }).attempts),
    } as Log;
    const bursts = new FailedLogins({ inTx: api.database.database.inTx, log: counting }, undefined, 100);
    // One IPv6 host owns a whole /64 network, so the hub counts the addresses of a /64 as one address.
    for (let n = 1; n <= 20; n += 1)
      bursts.note({ address: `2001:db8:0:1::${n}`, operationId: "listNodes", requestId: "r" });
    await until("those after the first to be told, though none follows", () =>
      burst.reduce((sum, attempts) => sum + attempts, 0) === 20 ? true : undefined,
    );
    expect(burst[0]).toBe(1);
    const authorization = `Bearer ${TRIED}`;
    expect((await api.ask("GET", "/api/v1/admin/nodes", undefined, { authorization })).status).toBe(401);
    const rows = await until("they are audited", async () => {
      const all = await audited();
      return all.some(({ target }) => target === "addresses/unknown") && all.length >= 6 ? all : undefined;
    });
    expect(rows.every(({ actor }) => actor === "unknown")).toBe(true);
    expect(rows.map(({ target }) => target)).toContain("addresses/2001:db8:0:1::/64");
    const lines = api.logged.read().lines.map((line) => JSON.stringify(line));
    expect(lines.filter((line) => line.includes("an API token was refused"))).toHaveLength(1);
    expect([...rows.map((row) => JSON.stringify(row)), ...lines].join("\n")).not.toContain(TRIED);
  });

  it.each(ROUTES.filter((route) => route.permission !== "public").map((route) => [route.operationId, route] as const))(
    "%s refuses a request without a valid token and writes nothing",
    async (_, route) => {
      const before = await api.counts();
      for (const headers of [
        { authorization: "" },
        { authorization: `Bearer ${TRIED}` },
        { authorization: `Basic ${api.admin}` },
      ]) {
        const answer = await api.ask(
          route.method,
          filled(route.path),
          route.body === undefined ? undefined : {},
          headers,
        );
        expect(answer.status).toBe(401);
        expect(answer.problem.code).toBe("unauthenticated");
        expect(answer.headers.get("content-type")).toBe("application/problem+json");
      }
      expect(await api.counts()).toEqual(before);
    },
  );

  it.each(ROUTES.filter((route) => route.permission === "write").map((route) => [route.operationId, route] as const))(
    "%s refuses a viewer",
    async (_, route) => {
      const answer = await api.ask(route.method, filled(route.path), route.body === undefined ? undefined : {}, {
        authorization: `Bearer ${api.viewer}`,
      });
      expect(answer.problem.code).toBe("forbidden");
    },
  );

  it.each(
    ROUTES.filter((route) => route.method === "POST" && route.permission === "write").map(
      (route) => [route.operationId, route] as const,
    ),
  )("%s accepts an Idempotency-Key exactly when its description offers one", async (_, route) => {
    const { body: document } = await api.ask("GET", "/api/v1/openapi.json");
    const described = document.paths[route.path].post as { parameters: { name: string }[] };
    const offered = described.parameters.some(({ name }) => name === "Idempotency-Key");
    const body = route.body === undefined ? undefined : { surprise: 1 };
    const answer = await api.ask("POST", filled(route.path), body, { "idempotency-key": `of ${route.operationId}` });
    const plain = await api.ask("POST", filled(route.path), body, { "idempotency-key": `of-${route.operationId}` });
    const refused = ({ problem }: typeof answer) =>
      (problem?.errors ?? []).filter(({ pointer }) => pointer === "/headers/idempotency-key").length;
    expect(refused(answer), "with a space").toBe(1);
    expect(refused(plain)).toBe(offered ? 0 : 1);
  });

  it("returns the name, the role and the rights of the request's token", async () => {
    const you = async (token: string) =>
      (await api.ask("GET", "/api/v1/admin/status", undefined, { authorization: `Bearer ${token}` })).body.you;
    expect(await you(api.admin)).toEqual({ name: "admin", role: "admin", rights: RIGHTS_OF.admin });
    expect(await you(api.viewer)).toEqual({ name: "watcher", role: "viewer", rights: RIGHTS_OF.viewer });
  });

  it.each(ROUTES.filter((route) => route.body !== undefined).map((route) => [route.operationId, route] as const))(
    "%s names an unknown field and refuses a body that is not JSON",
    async (_, route) => {
      const path = route.path.includes("/skus/{id}") ? "/api/v1/admin/skus/x" : filled(route.path);
      const unknown = await api.ask(route.method, path, { surprise: 1 });
      expect(unknown.problem.code).toBe("validation_failed");
      expect(unknown.problem.errors?.length).toBeGreaterThan(0);
      expect((await api.ask(route.method, path, "{")).problem.code).toBe("malformed_json");
      expect(
        (await api.ask(route.method, path, "a=1", { "content-type": "application/x-www-form-urlencoded" })).problem
          .code,
      ).toBe("unsupported_media_type");
    },
  );

  it("serves the description of events and of the agent's protocol", async () => {
    const { status, body } = await api.ask("GET", "/api/v1/asyncapi.json");
    expect([status, Object.keys(body.channels)]).toEqual([200, ["stream", "agent", "webhook"]]);
  });

  it("changes a resource only with its current version, in every PATCH route (decision P4)", async () => {
    const { siteId, profileId, skuId } = await seedApi(api, "patched");
    const site = `${SITES}/${siteId}`;
    const login = { selector_type: "hostname", selector_value: "h", user: "u", pass: "p" };
    const { id: overrideId } = (await api.ask("POST", `${site}/power-credential-overrides`, login)).body;
    const hook = {
      url: "https://hooks.example.com/x",
      secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    };
    const { id: webhookId } = (await api.ask("POST", "/api/v1/admin/webhooks", hook)).body;
    const manual = { onboarding_mode: "manual", hostname: "patched", sku_id: skuId, region_code: "r1" };
    const { node_id: nodeId } = (await api.ask("POST", "/api/v1/admin/nodes", manual)).body;
    const made = async (path: string, body: object) => (await api.ask("POST", `/api/v1/admin/${path}`, body)).body.id;
    const host = { siteId: SiteId.parse(siteId), hostname: "leased", sku: skuId };
    const leased = await api.database.database.inTx((tx) => addSchedulableNode(tx, host));
    const order = { node_id: leased, tenant: "acme", login_user: "ada", ssh_keys: [SSH_KEY] };
    const instanceId = await made("allocations", order);
    const keyId = await made("ssh-keys", { tenant: "acme", name: "laptop", public_key: SSH_KEY });
    const groupId = await made("ssh-key-groups", { tenant: "acme", name: "team", key_ids: [keyId] });
    const places: Readonly<Record<string, string>> = {
      "/api/v1/admin/nodes/{id}": `/api/v1/admin/nodes/${nodeId}`,
      [`${SITES}/{id}`]: site,
      [`${SITES}/{id}/policy`]: `${site}/policy`,
      [`${SITES}/{id}/profiles/{profile_id}`]: `${site}/profiles/${profileId}`,
      [`${SITES}/{id}/power-credential-overrides/{override_id}`]: `${site}/power-credential-overrides/${overrideId}`,
      "/api/v1/admin/instances/{id}": `/api/v1/admin/instances/${instanceId}`,
      "/api/v1/admin/ssh-keys/{id}": `/api/v1/admin/ssh-keys/${keyId}`,
      "/api/v1/admin/ssh-key-groups/{id}": `/api/v1/admin/ssh-key-groups/${groupId}`,
      "/api/v1/admin/skus/{id}": `/api/v1/admin/skus/${skuId}`,
      "/api/v1/admin/webhooks/{id}": `/api/v1/admin/webhooks/${webhookId}`,
    };
    const patched = ROUTES.filter((route) => route.method === "PATCH").map((route) => route.path);
    expect(patched.toSorted()).toEqual(Object.keys(places).toSorted());
    /** The bodies of the routes that need one. */
    const bodies: Readonly<Record<string, object>> = {
      "/api/v1/admin/instances/{id}": { labels: { team: "blue" } },
      "/api/v1/admin/ssh-keys/{id}": { name: "desk" },
    };
    for (const [route, place] of Object.entries(places)) {
      const etag = (await api.ask("GET", place)).headers.get("etag");
      expect(etag ?? "none", place).toMatch(/^"[^"]+"$/);
      const patch = (match?: string) =>
        api.ask("PATCH", place, bodies[route] ?? {}, match === undefined ? {} : { "if-match": match });
      expect((await patch()).problem, place).toMatchObject({ status: 428, code: "precondition_required" });
      expect((await patch('"0"')).problem, place).toMatchObject({ status: 412, code: "precondition_failed" });
      const changed = await patch(etag ?? "");
      expect(changed.status, place).toBe(200);
      expect(changed.headers.get("etag"), place).toBe((await api.ask("GET", place)).headers.get("etag"));
      expect((await patch(etag ?? "")).status, place).toBe(412);
    }
  });

  it("names each wrong or unknown field by its pointer", async () => {
    const answer = await api.ask("POST", SITES, {
      ...SITE_BODY,
      pxe_vlan_vid: 5000,
      api_base_url: "ftp://x",
      colour: "red",
    });
    expect(answer.status).toBe(400);
    expect(answer.problem.errors?.map((error) => error.pointer).sort()).toEqual([
      "/api_base_url",
      "/colour",
      "/pxe_vlan_vid",
    ]);
  });

  it("answers unknown paths and wrong methods with problems", async () => {
    expect((await api.ask("GET", "/api/v1/admin/nothing")).problem.code).toBe("not_found");
    const wrong = await api.ask("PUT", SITES);
    expect(wrong.problem.code).toBe("method_not_allowed");
    expect(wrong.headers.get("allow")).toContain("POST");
  });

  it("refuses a body that is too large and an invalid cursor", async () => {
    expect((await api.ask("POST", SITES, JSON.stringify({ name: "x".repeat(3_000_000) }))).problem.code).toBe(
      "body_too_large",
    );
    for (const cursor of [
      "nonsense",
      Buffer.from("[1]").toString("base64url"),
      Buffer.from('["a","b","c"]').toString("base64url"),
    ]) {
      expect((await api.ask("GET", `${SITES}?cursor=${cursor}`)).problem.errors).toEqual([
        { pointer: "/cursor", message: "is not a cursor of this list" },
      ]);
    }
    expect((await api.ask("GET", `${SITES}?limit=0`)).problem.errors?.[0]?.pointer).toBe("/limit");
  });

  it("gives each request an id of its own, and returns the id of the client beside it if it is a valid one", async () => {
    const ids = async (given: string) => {
      const { headers } = await api.ask("GET", "/healthz", undefined, { "x-request-id": given });
      return [headers.get("x-request-id"), headers.get("x-client-request-id")];
    };
    for (const path of ["/healthz", "/api/v1/admin/nodes?limit=0"]) {
      const { headers } = await api.ask("GET", path, undefined, { "x-request-id": "abc-1" });
      expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
      expect(headers.get("x-client-request-id")).toBe("abc-1");
    }
    for (const bad of ["a b\tc", "x".repeat(65)])
      expect(await ids(bad)).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), null]);
  });

  it("replays the answer to a repeated Idempotency-Key, and refuses the key for another request", async () => {
    const key = { "idempotency-key": "once" };
    const first = await api.ask("POST", SITES, siteBody("idem"), key);
    const again = await api.ask("POST", SITES, siteBody("idem"), key);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect((await api.ask("POST", SITES, siteBody("other"), key)).problem.code).toBe("idempotency_key_reused");
  });

  it("carries out one of several concurrent requests with one Idempotency-Key, and gives all of them its answer", async () => {
    const { inTx, pool } = api.database.database;
    // The test locks a database table, so that no request can create a site before all requests have arrived.
    const { answers } = await inTx(async (tx) => {
      await tx.execute("lock table maas_sites in share mode");
      const asked = [1, 2, 3].map(() => api.ask("POST", SITES, siteBody("race"), { "idempotency-key": "race" }));
      const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
      await until("all to wait", async () =>
        (await pool.query(waiting)).rowCount === asked.length ? true : undefined,
      );
      return { answers: Promise.all(asked) };
    });
    const ids = (await answers).map(({ status, body }) => [status, body.id]);
    expect(ids).toEqual(Array(3).fill([201, ids[0]?.[1]]));
  });

  it("audits the actor and the action, but no secret", async () => {
    const { siteId } = await seedApi(api, "audited");
    await api.ask("POST", `${SITES}/${siteId}/credentials`, {
      maas_token: "a:b:canarysecret1",
      power: { user: "root", pass: "canarysecret2" },
      deploy_password: "canarysecret3",
    });
    const { rows } = await api.database.database.pool.query(
      "select actor, role, action, target, details::text as details from audit_logs where target = $1 order by id",
      [`maas-sites/${siteId}`],
    );
    expect(rows.map((row) => [row.actor, row.role, row.action])).toContainEqual([
      "admin",
      "admin",
      "writeMaasSiteCredentials",
    ]);
    expect(JSON.stringify(rows)).not.toContain("canarysecret");
  });

  it("compresses the answers of reading requests, and of no request that may answer with a secret", async () => {
    const url = await api.listen();
    const authorization = `Bearer ${api.admin}`;
    const asked = (path: string, accept: string, init: RequestInit = {}) =>
      fetch(`${url}${path}`, { ...init, headers: { authorization, "accept-encoding": accept, ...init.headers } });
    const headersOf = ({ headers }: Response) => [headers.get("content-encoding"), headers.get("vary")];
    const whole = await asked("/api/v1/openapi.json", "identity");
    expect(headersOf(whole)).toEqual([null, "accept-encoding"]);
    const document = await whole.text();
    for (const [accept, encoding] of [
      ["gzip, deflate", "gzip"],
      ["gzip;q=0, br", "br"],
    ] as const) {
      const small = await asked("/api/v1/openapi.json", accept);
      expect(headersOf(small)).toEqual([encoding, "accept-encoding"]);
      expect(await small.text()).toBe(document);
    }
    const body = JSON.stringify({ name: "n".repeat(40), role: "viewer", expires_in_days: 1 });
    const token = await asked("/api/v1/admin/tokens", "gzip", {
      method: "POST",
      body,
      headers: { "content-type": "application/json" },
    });
    expect([token.status, ...headersOf(token)]).toEqual([201, null, null]);
    expect(headersOf(await asked("/api/v1/admin/skus/none", "gzip"))[0]).toBeNull();
  });

  it("leads a browser from the root to the console", async () => {
    const { status, headers } = await api.page("/");
    expect([status, headers.get("location")]).toEqual([302, "/console/"]);
  });

  it("serves the API's description with a policy against outside code and a new nonce each time", async () => {
    const pages = await Promise.all([api.page("/docs"), api.page("/docs")]);
    for (const page of pages) {
      expect(page.status).toBe(200);
      const policy = page.headers.get("content-security-policy") ?? "";
      expect(policy).toMatch(/default-src 'none'/);
      const nonce = /script-src 'nonce-([^']+)'/.exec(policy)?.[1] ?? "";
      expect(page.text).toContain(`nonce="${nonce}">`);
      expect(page.text.match(/<(script|style)/g)?.length).toBe(page.text.split(`nonce="${nonce}"`).length - 1);
      expect(page.text).not.toMatch(/(src|href)=["']?(\w+:|\/\/)/);
    }
    expect(pages[0]?.headers.get("content-security-policy")).not.toBe(pages[1]?.headers.get("content-security-policy"));
  });
});
