import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RULES, SignInWorld } from "../../support/sign-in-world.ts";
import { addActiveNode, retireNode } from "../../support/site-nodes.ts";
import { SmallBrowser } from "../../support/small-browser.ts";

const STATUS = "/api/v1/admin/status";
const SESSIONS = "/api/v1/admin/sessions";
const SESSION = "muster";
const SIGN_IN = "muster-sign-in";

describe("a sign-in on the page by the provider", () => {
  let world: SignInWorld;
  beforeAll(async () => {
    world = await SignInWorld.start();
  });
  afterAll(() => world?.close());
  beforeEach(() => {
    world.provider.accounts.clear();
    world.provider.accounts.set("ann", { preferred_username: "ann@example.com", groups: ["gpu-admins", "lunch"] });
    world.provider.accounts.set("bob", { preferred_username: "bob", groups: ["readers"] });
    world.provider.accounts.set("eve", { preferred_username: "eve", groups: ["lunch"] });
    world.setRules(RULES);
  });
  afterEach(() => {
    world.provider.failsWith = null;
  });
  const query = (text: string, values: readonly unknown[] = []) =>
    world.database.database.pool.query(text, [...values]);
  const you = async (browser: SmallBrowser, url?: string) => {
    const { status, body } = await world.get(browser, STATUS, url);
    return status === 200 ? `${body.you.name} ${body.you.role}` : `${status} ${body.code}`;
  };
  const sessionOf = (browser: SmallBrowser): string => browser.cookies(world.url).get(SESSION) ?? "";
  /** Makes the known claims so old that the next request asks the provider. */
  const ageClaims = () =>
    query(
      "update page_sessions set claims_at = now() - interval '16 minutes', refresh_tried_at = now() - interval '2 minutes'",
    );
  /** Visits the callback address as a browser, and returns the code on the page that says why it failed. */
  const failure = async (browser: SmallBrowser, callback: string) => {
    const { status, text } = await browser.visit(callback);
    return `${status} ${/Code <code>(\w+)</.exec(text)?.[1]}`;
  };

  it("goes by code with PKCE, makes a session of the person's role, and returns to the screen", async () => {
    const browser = new SmallBrowser();
    world.provider.signsIn = "ann";
    const begun = await browser.send(`${world.url}/sign-in?to=${encodeURIComponent("console/nodes?status=offline")}`);
    const way = new URL(begun.headers.get("location") ?? "");
    expect(Object.fromEntries(way.searchParams)).toMatchObject({
      response_type: "code",
      code_challenge_method: "S256",
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
    const last = await browser.visit(way.href, {}, (at) => at === `${world.url}/console/nodes?status=offline`);
    expect(last.url).toBe(`${world.url}/console/nodes?status=offline`);
    expect(await you(browser)).toBe("oidc:ann@example.com admin");
    expect((await world.signIn("bob")).last.url).toBe(`${world.url}/console/`);
    const audit = await query(
      "select actor, role, via, address, details->>'by' as by from audit_logs where action = 'signIn' order by id",
    );
    expect(audit.rows).toEqual([
      { actor: "oidc:ann@example.com", role: "admin", via: "oidc", address: "127.0.0.1", by: "provider" },
      { actor: "oidc:bob", role: "viewer", via: "oidc", address: "127.0.0.1", by: "provider" },
    ]);
  });

  it("returns to no other address than the console's", async () => {
    for (const to of ["https://evil.example/", "//evil.example", "/\\evil.example", "console", "console/ \n"]) {
      const browser = new SmallBrowser();
      world.provider.signsIn = "ann";
      const last = await browser.visit(`${world.url}/sign-in?to=${encodeURIComponent(to)}`);
      expect(last.url, to).toBe(`${world.url}/console/`);
    }
  });

  it("stores no value with which somebody could use the session, and only the claims that rules read", async () => {
    const { browser } = await world.signIn("ann");
    const { rows } = await query("select * from page_sessions order by created_at desc limit 1");
    const row = JSON.stringify(rows[0]);
    expect(row).not.toContain(sessionOf(browser));
    expect(rows[0].claims).toEqual({ groups: ["gpu-admins"] });
    expect(rows[0].refresh_sealed).toMatch(/^[\w-]{80,}$/);
  });

  it("gives the cookie to scripts and other sites never, and to clear text on loopback only", async () => {
    const { browser, callback } = await world.toCallback("ann");
    const answer = await browser.send(callback);
    const [cleared, made] = answer.headers.getSetCookie();
    expect(cleared).toBe(`${SIGN_IN}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0`);
    expect(made).toMatch(/^muster=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
  });

  describe("that is not acceptable", () => {
    it("is refused a second time, and without the browser's own cookie", async () => {
      const { browser, callback } = await world.toCallback("ann");
      const kept = browser.cookies(world.url).get(SIGN_IN) ?? "";
      expect(await failure(new SmallBrowser(), callback)).toBe("403 stale");
      expect((await browser.visit(callback)).url).toBe(`${world.url}/console/`);
      expect(await failure(browser, callback)).toBe("403 stale");
      browser.cookies(world.url).set(SIGN_IN, kept);
      expect(await failure(browser, callback)).toBe("403 stale");
    });

    it("is refused with another person's address of return, so that nobody signs in as somebody else unseen", async () => {
      const [eve, ann] = [await world.toCallback("eve"), await world.toCallback("ann")];
      expect(await failure(ann.browser, eve.callback)).toBe("403 stale");
      expect(await you(ann.browser)).toBe("401 unauthenticated");
    });

    const PARTS = ["state", "nonce", "verifier"] as const;
    const partsOf = (browser: SmallBrowser): string[] => (browser.cookies(world.url).get(SIGN_IN) ?? "").split(".");
    const change = (browser: SmallBrowser, part: (typeof PARTS)[number], value: string): void => {
      const parts = partsOf(browser).with(PARTS.indexOf(part), value);
      browser.cookies(world.url).set(SIGN_IN, parts.join("."));
    };
    it.each([
      ["state", "403 stale"],
      ["nonce", "403 invalid"],
      ["verifier", "403 stale"],
    ] as const)("is refused with another %s", async (name, expected) => {
      const { browser, callback } = await world.toCallback("ann");
      change(browser, name, "another-value-of-forty-three-letters-0123456");
      expect(await failure(browser, callback)).toBe(expected);
      expect(await you(browser)).toBe("401 unauthenticated");
    });

    it("is refused with the nonce of an earlier sign-in", async () => {
      const first = await world.toCallback("ann");
      const [, nonce = ""] = partsOf(first.browser);
      const second = await world.toCallback("ann");
      change(second.browser, "nonce", nonce);
      expect(await failure(second.browser, second.callback)).toBe("403 invalid");
    });

    it("is refused from another issuer (RFC 9207)", async () => {
      const { browser, callback } = await world.toCallback("ann");
      const changed = new URL(callback);
      changed.searchParams.set("iss", "https://evil.example");
      expect(await failure(browser, changed.href)).toBe("403 invalid");
    });

    it("is told when the person refuses at the provider", async () => {
      const browser = new SmallBrowser();
      world.provider.signsIn = null;
      const { status, text } = await browser.visit(`${world.url}/sign-in`);
      expect(status).toBe(403);
      expect(text).toContain("access_denied");
    });
  });

  it("gives an approval that two hubs use once, and that counts while the session of its second person is open", async () => {
    world.provider.accounts.set("dora", { preferred_username: "dora", groups: ["gpu-admins"] });
    const authorization = `Bearer ${await world.provider.accessToken({ sub: "ann", groups: ["gpu-admins"] })}`;
    const ask = async (path: string, body: object, headers = {}, url = world.url) => {
      const all = { authorization, "content-type": "application/json", ...headers };
      const init = { method: "POST", headers: all, body: JSON.stringify(body) };
      const answer = await fetch(`${url}/api/v1/admin${path}`, init);
      return { status: answer.status, body: JSON.parse(await answer.text()) };
    };
    const interfaces = { pxe_iface: "ens19", pxe_vlan_vid: 46, node_pxe_iface: "eno1" };
    const region = { name: "dc1", region_code: "r1", api_base_url: "http://127.0.0.1:1/MAAS" };
    const { body: site } = await ask("/maas-sites", { ...region, ...interfaces });
    await query("update maas_site_profiles set second_person = '{full_decommission}'");
    const nodeId = await world.database.database.inTx(async (tx) => {
      const id = await addActiveNode(tx, { siteId: site.id, hostname: "gpu-1" });
      await retireNode(tx, id);
      return id;
    });
    const remove = async (approval?: string, url?: string): Promise<string> => {
      const headers = approval === undefined ? {} : { "muster-approval": approval };
      const { status, body } = await ask(`/nodes/${nodeId}/remove`, { reason: "old" }, headers, url);
      return body.context?.approval_id ?? body.code ?? String(status);
    };
    const approval = await remove();
    const { browser } = await world.signIn("dora");
    const granted = await world.post(browser, `/api/v1/admin/approvals/${approval}/grant`, { reason: "seen" });
    expect(granted.status).toBe(200);
    await query("update page_sessions set ended_at = now() where subject = 'dora'");
    expect(await remove(approval)).toBe("approval_unusable");
    await world.signIn("dora");
    const urls = [world.url, world.otherUrl, world.url, world.otherUrl];
    const answers = await Promise.all(urls.map((url) => remove(approval, url)));
    const refused = "approval_unusable";
    expect(answers.toSorted()).toEqual(["202", refused, refused, refused]);
    const used = await query("select from domain_events where type = 'approval.used'");
    expect(used.rows).toHaveLength(1);
  });

  it("goes on after the provider has changed its keys", async () => {
    await world.signIn("ann");
    await world.provider.rotateKey();
    const { browser } = await world.signIn("ann");
    expect(await you(browser)).toBe("oidc:ann@example.com admin");
  });

  it("says to a person without a role that only the role is missing, and makes no session", async () => {
    const { browser, last } = await world.signIn("eve");
    expect(last.status).toBe(403);
    expect(last.text).toContain("You are signed in as oidc:eve, but no rule of this hub gives you a role.");
    expect(browser.cookies(world.url).has(SESSION)).toBe(false);
  });

  it("says that the provider has left out the groups of a person with too many", async () => {
    world.provider.accounts.set("max", { preferred_username: "max", groups: [], _claim_names: { groups: "src1" } });
    const { last } = await world.signIn("max");
    expect(last.status).toBe(403);
    expect(last.text).toContain("the provider has left out your claim groups");
    expect(last.text).toContain("groups_left_out");
  });

  it("shows a name with markup as text", async () => {
    world.provider.accounts.set("mal", { preferred_username: "<img src=x onerror=alert(1)>", groups: [] });
    const { last } = await world.signIn("mal");
    expect(last.text).toContain("oidc:&lt;img src=x");
    expect(last.text).not.toContain("<img");
    expect(last.headers.get("content-security-policy")).toMatch(/^default-src 'none'/);
  });

  describe("while rules and groups change", () => {
    it("loses a role at the next request after its rule is gone, and gets another role as fast", async () => {
      const { browser } = await world.signIn("ann");
      world.setRules(RULES.filter(({ value }) => value !== "gpu-admins"));
      expect(await you(browser)).toBe("403 no_role");
      expect(await you(browser, world.otherUrl)).toBe("403 no_role");
      world.setRules([{ claim: "groups", value: "gpu-admins", role: "viewer", sites: ["nowhere"] }]);
      expect(await you(browser)).toBe("oidc:ann@example.com viewer");
      expect((await world.get(browser, "/api/v1/admin/maas-sites")).body.items).toEqual([]);
      world.setRules("[{]");
      expect(await you(browser), "the last valid rules stay").toBe("oidc:ann@example.com viewer");
    });

    it("loses a role when the provider no longer names the group, at the next look at the provider", async () => {
      const { browser } = await world.signIn("ann");
      world.provider.accounts.set("ann", { preferred_username: "ann@example.com", groups: ["readers"] });
      expect(await you(browser)).toBe("oidc:ann@example.com admin");
      await ageClaims();
      expect(await you(browser)).toBe("oidc:ann@example.com viewer");
      await ageClaims();
      world.provider.accounts.set("ann", { preferred_username: "ann@example.com", groups: [] });
      expect(await you(browser), "the refresh token is used once and replaced").toBe("403 no_role");
    });

    it("asks the provider once for several requests at two hubs", async () => {
      const { browser } = await world.signIn("ann");
      await ageClaims();
      const asked = () => world.provider.asked.filter((one) => one === "POST /token").length;
      const before = asked();
      const all = [1, 2, 3, 4].flatMap(() => [you(browser), you(browser, world.otherUrl)]);
      expect(new Set(await Promise.all(all))).toEqual(new Set(["oidc:ann@example.com admin"]));
      expect(asked() - before).toBe(1);
    });

    it("ends when the provider no longer knows the person", async () => {
      const { browser } = await world.signIn("ann");
      world.provider.accounts.delete("ann");
      await ageClaims();
      expect(await you(browser)).toBe("401 unauthenticated");
      world.provider.accounts.set("ann", { preferred_username: "ann@example.com", groups: ["gpu-admins"] });
      expect(await you(browser)).toBe("401 unauthenticated");
    });
  });

  it("says that the provider does not answer, while sessions go on", async () => {
    const { browser } = await world.signIn("ann");
    const waiting = await world.toCallback("bob");
    world.provider.failsWith = 503;
    await ageClaims();
    expect(await you(browser)).toBe("oidc:ann@example.com admin");
    const { last } = await world.signIn("bob");
    expect(last.status).toBe(503);
    expect(last.text).toContain("Sessions that exist go on.");
    expect(await failure(waiting.browser, waiting.callback)).toBe("503 provider_away");
  });

  describe("makes a session that", () => {
    it("has a new id, whatever cookie the browser had, and ends the earlier session of the browser", async () => {
      const planted = new SmallBrowser();
      planted.cookies(world.url).set(SESSION, "A".repeat(43));
      await world.signIn("ann", planted);
      expect(sessionOf(planted)).not.toBe("A".repeat(43));
      const own = (await world.signIn("bob")).browser;
      const first = sessionOf(own);
      await world.signIn("ann", own);
      expect(sessionOf(own)).not.toBe(first);
      const thief = new SmallBrowser();
      thief.cookies(world.url).set(SESSION, first);
      expect(await you(thief)).toBe("401 unauthenticated");
    });

    it("is valid on every hub of the database, and ends on all of them", async () => {
      const { browser, callback } = await world.toCallback("ann");
      const cookie = [...browser.cookies(world.url)].map(([name, value]) => `${name}=${value}`).join("; ");
      const other = await fetch(callback.replace(world.url, world.otherUrl), {
        headers: { cookie },
        redirect: "manual",
      });
      const made = /muster=([\w-]{43})/.exec(other.headers.getSetCookie().join("\n"))?.[1] ?? "";
      browser.cookies(world.url).set(SESSION, made);
      expect(await you(browser)).toBe("oidc:ann@example.com admin");
      expect(await you(browser, world.otherUrl)).toBe("oidc:ann@example.com admin");
      expect((await world.post(browser, "/sign-out", {})).status).toBe(204);
      browser.cookies(world.url).set(SESSION, made);
      expect(await you(browser)).toBe("401 unauthenticated");
      expect(await you(browser, world.otherUrl)).toBe("401 unauthenticated");
    });

    it.each([
      ["nobody used for eight hours", "last_used_at = now() - interval '481 minutes'"],
      ["is older than a day", "expires_at = now() - interval '1 second'"],
    ])("ends when it %s", async (_, change) => {
      const { browser } = await world.signIn("ann");
      const age = "created_at > now() - interval '1 minute' and ended_at is null";
      await query("update page_sessions set last_used_at = now() - interval '479 minutes' where ended_at is null");
      expect(await you(browser)).toBe("oidc:ann@example.com admin");
      await query(`update page_sessions set ${change} where ${age}`);
      expect(await you(browser)).toBe("401 unauthenticated");
    });

    it("ends when nobody used it for eight hours, although a tab has a stream of events open", async () => {
      const { browser } = await world.signIn("ann");
      const cookie = `${SESSION}=${sessionOf(browser)}`;
      const stream = await fetch(`${world.url}/api/v1/admin/events/stream`, { headers: { cookie } });
      expect(stream.status).toBe(200);
      await query("update page_sessions set last_used_at = now() - interval '7 hours 59 minutes 58 seconds'");
      // The hub looks at the session each second, and ends the stream with the session.
      for await (const _part of stream.body ?? []);
      expect(await you(browser)).toBe("401 unauthenticated");
    });

    it("ends by a sign-out, alone or with all others of the person", async () => {
      const [one, two, three] = [await world.signIn("ann"), await world.signIn("ann"), await world.signIn("ann")];
      const bob = await world.signIn("bob");
      const kept = sessionOf(one.browser);
      expect((await world.post(one.browser, "/sign-out", { everywhere: false })).status).toBe(204);
      expect(one.browser.cookies(world.url).has(SESSION)).toBe(false);
      one.browser.cookies(world.url).set(SESSION, kept);
      expect(await you(one.browser)).toBe("401 unauthenticated");
      expect(await you(two.browser)).toBe("oidc:ann@example.com admin");
      expect((await world.post(two.browser, "/sign-out", { everywhere: true })).status).toBe(204);
      expect(await you(three.browser)).toBe("401 unauthenticated");
      expect(await you(bob.browser)).toBe("oidc:bob viewer");
    });

    it("is listed for administrators, and ends when one of them says so", async () => {
      const ann = (await world.signIn("ann")).browser;
      const bob = (await world.signIn("bob")).browser;
      const { body } = await world.get(ann, SESSIONS);
      expect(body.items[0]).toMatchObject({ name: "oidc:bob", subject: "bob", token_id: null, address: "127.0.0.1" });
      expect(JSON.stringify(body)).not.toContain(sessionOf(bob));
      expect((await world.get(bob, SESSIONS)).status).toBe(403);
      expect((await world.post(ann, `${SESSIONS}/${body.items[0].id}/end`, {})).status).toBe(204);
      expect(await you(bob)).toBe("401 unauthenticated");
      expect((await world.post(ann, `${SESSIONS}/${body.items[0].id}/end`, {})).status).toBe(404);
    });
  });
});
