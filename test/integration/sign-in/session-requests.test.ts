import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findTokenHolder, putApiToken } from "../../../hub/db/queries/api-tokens.ts";
import { endSession } from "../../../hub/db/queries/page-sessions.ts";
import { tokenHash } from "../../../hub/people/credential.ts";
import { beginByToken } from "../../../hub/sign-in/sessions.ts";
import { type ApiHarness, siteBody, startApi } from "../../support/api-harness.ts";

const SITES = "/api/v1/admin/maas-sites";
const OWN = "https://muster.example";
const PAGE = { "sec-fetch-site": "same-origin", origin: OWN, "content-type": "application/json" };

describe("a request with a session's cookie", () => {
  let api: ApiHarness;
  let url: string;
  beforeAll(async () => {
    api = await startApi({ signIn: { publicUrl: OWN, secure: true, oidc: null } });
    url = await api.listen();
  });
  afterAll(() => api.close());

  const signIn = (token: string, headers: Record<string, string> = PAGE, cookie = "") =>
    fetch(`${url}/sign-in/token`, {
      method: "POST",
      headers: { ...headers, ...(cookie === "" ? {} : { cookie }) },
      body: JSON.stringify({ token }),
    });
  const cookieOf = async (token: string): Promise<string> =>
    (await signIn(token)).headers.getSetCookie()[0]?.split(";")[0] ?? "";
  const send = async (path: string, headers: Record<string, string>, body: unknown = undefined, method = "POST") => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, code: text.startsWith("{") ? JSON.parse(text).code : undefined };
  };

  it("comes after a sign-in with a token, whose cookie no script and no other host gets", async () => {
    const answer = await signIn(api.admin);
    expect(answer.status).toBe(204);
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-muster=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/),
    ]);
    expect(answer.headers.getSetCookie()[0]).not.toContain(api.admin);
    const cookie = await cookieOf(api.viewer);
    const status = await fetch(`${url}/api/v1/admin/status`, { headers: { cookie } });
    expect(((await status.json()) as { you: object }).you).toMatchObject({ name: "watcher", role: "viewer" });
  });

  it("is audited at its begin and its end with the way and the address of the person", async () => {
    const cookie = await cookieOf(api.viewer);
    expect((await send("/sign-out", { cookie, ...PAGE }, {})).status).toBe(204);
    const { rows } = await api.database.database.pool.query(
      "select action, actor, via, address from audit_logs where action in ('signIn', 'signOut') order by id desc limit 2",
    );
    expect(rows).toEqual([
      { action: "signOut", actor: "watcher", via: "session", address: "127.0.0.1" },
      { action: "signIn", actor: "watcher", via: "token", address: "127.0.0.1" },
    ]);
  });

  it("may change something, as the token may, and only from the hub's own page", async () => {
    const cookie = await cookieOf(api.admin);
    const make = (name: string, headers: Record<string, string>, body: unknown = siteBody(name)) =>
      send(SITES, { cookie, ...headers }, body);
    expect((await make("good", PAGE)).status).toBe(201);
    const before = await api.counts();
    const { origin: _origin, ...noOrigin } = PAGE;
    const { "sec-fetch-site": _site, ...noSite } = PAGE;
    const refused: readonly [string, Record<string, string>, string][] = [
      ["from another site", { ...PAGE, "sec-fetch-site": "cross-site" }, "cross_site"],
      ["from a sister site", { ...PAGE, "sec-fetch-site": "same-site" }, "cross_site"],
      ["from another origin", { ...noSite, origin: "https://evil.example" }, "cross_site"],
      ["with marks that disagree", { ...PAGE, origin: "https://evil.example" }, "cross_site"],
      ["without marks", { "content-type": "application/json" }, "cross_site"],
      ["as a form", { ...PAGE, "content-type": "text/plain" }, "unsupported_media_type"],
      ["with a token too", { ...PAGE, authorization: `Bearer ${api.admin}` }, "two_credentials"],
    ];
    for (const [how, headers, code] of refused) expect((await make("bad", headers)).code, how).toBe(code);
    expect(await api.counts()).toEqual(before);
    expect((await make("fine", noOrigin)).status).toBe(201);
    expect((await make("well", noSite)).status).toBe(201);
    expect((await send(SITES, { cookie: await cookieOf(api.viewer), ...PAGE }, siteBody("read"))).code).toBe(
      "forbidden",
    );
  });

  it("is refused with two credentials even if it only reads, and a bearer token needs no marks", async () => {
    const cookie = await cookieOf(api.admin);
    const authorization = `Bearer ${api.admin}`;
    expect((await send(SITES, { cookie, authorization }, undefined, "GET")).code).toBe("two_credentials");
    const cross = { authorization, "sec-fetch-site": "cross-site", "content-type": "application/json" };
    expect((await send(SITES, cross, siteBody("program"))).status).toBe(201);
  });

  it("is refused with two cookies of the name, one of which somebody else may have set", async () => {
    const cookie = await cookieOf(api.admin);
    expect((await send(SITES, { cookie: `${cookie}; ${cookie.slice(0, -1)}A` }, undefined, "GET")).status).toBe(401);
    for (const value of ["", "x", "A".repeat(43), `${"A".repeat(42)}.`])
      expect((await send(SITES, { cookie: `__Host-muster=${value}` }, undefined, "GET")).code).toBe("unauthenticated");
    expect((await send(SITES, { cookie: cookie.replace("__Host-", "") }, undefined, "GET")).status).toBe(401);
  });

  it("repeats a change with one Idempotency-Key, as a token does", async () => {
    const cookie = await cookieOf(api.admin);
    const headers = { cookie, ...PAGE, "idempotency-key": "page-1" };
    const first = await send(SITES, headers, siteBody("twice"));
    expect([first, await send(SITES, headers, siteBody("twice"))]).toEqual([first, first]);
    const other = { ...headers, cookie: await cookieOf(api.admin) };
    expect((await send(SITES, other, siteBody("twice"))).code).toBe("idempotency_key_reused");
  });

  it("is refused when the token of the sign-in has been revoked", async () => {
    const { inTx, pool } = api.database.database;
    await inTx((tx) => putApiToken(tx, { name: "short", role: "admin", tokenSha256: tokenHash("short-token") }));
    const cookie = await cookieOf("short-token");
    expect((await send(SITES, { cookie }, undefined, "GET")).status).toBe(200);
    await pool.query("update api_tokens set revoked_at = now() where name = 'short'");
    expect((await send(SITES, { cookie }, undefined, "GET")).status).toBe(401);
  });

  it("cannot begin with a wrong token or for another site's page, and the wrong token is noted", async () => {
    const wrong = await signIn("nobody-has-this-token");
    expect([wrong.status, wrong.headers.getSetCookie()]).toEqual([401, []]);
    const forged = await signIn(api.admin, { ...PAGE, "sec-fetch-site": "cross-site" });
    expect([forged.status, forged.headers.getSetCookie()]).toEqual([403, []]);
    expect(
      api.logged
        .read()
        .lines.map((line) => JSON.stringify(line))
        .join("\n"),
    ).not.toContain("nobody-has-this");
  });

  it("ends for other pages only by the page itself", async () => {
    const cookie = await cookieOf(api.admin);
    const out = (headers: Record<string, string>) => send("/sign-out", { cookie, ...headers }, { everywhere: true });
    expect((await out({ ...PAGE, "sec-fetch-site": "cross-site" })).code).toBe("cross_site");
    expect((await send(SITES, { cookie }, undefined, "GET")).status).toBe(200);
    expect((await out(PAGE)).status).toBe(204);
    expect((await send(SITES, { cookie }, undefined, "GET")).status).toBe(401);
  });

  it("is of one of at most fifty sessions of a token, of which the oldest end", async () => {
    const { db, inTx } = api.database.database;
    const holder = await findTokenHolder(db, tokenHash(api.viewer));
    if (holder === null) throw new Error("there is no viewer");
    const visit = { address: "10.0.0.1", userAgent: "x".repeat(900), requestId: "r", oldCookie: null };
    const ids: (string | null)[] = [];
    for (let n = 0; n < 52; n += 1) ids.push(await beginByToken(inTx, holder, visit));
    const valid = async (id: string | null | undefined) =>
      (await send(SITES, { cookie: `__Host-muster=${id}` }, undefined, "GET")).status === 200;
    expect([await valid(ids[0]), await valid(ids[1]), await valid(ids[2]), await valid(ids[51])]).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect(await endSession(db, "00000000-0000-4000-8000-000000000000")).toEqual([]);
  });
});

it("a sign-in at the provider makes one session, even if its answer comes twice", async () => {
  const api = await startApi();
  const { inTx } = api.database.database;
  const { startSession } = await import("../../../hub/db/queries/page-sessions.ts");
  const one = (idSha256: string) =>
    inTx((tx) =>
      startSession(tx, {
        idSha256,
        owner: { subject: "ann" },
        name: "oidc:ann",
        claims: {},
        refreshSealed: null,
        stateSha256: "the same",
        address: "10.0.0.1",
        userAgent: "",
      }),
    );
  expect([await one("a"), await one("b")]).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), null]);
  await api.close();
});
