import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MACHINE_CLIENT, RESOURCE } from "../../fakes/oidc/provider.ts";
import { SignInWorld } from "../../support/sign-in-world.ts";
import { SmallBrowser } from "../../support/small-browser.ts";
import { until } from "../../support/until.ts";

/** Enters the code of a device on the provider's form, and confirms it. */
async function approve(world: SignInWorld, account: string, address: string): Promise<string> {
  world.provider.signsIn = account;
  const browser = new SmallBrowser();
  const form = (text: string): URLSearchParams => {
    const fields = new URLSearchParams();
    for (const [, name = "", value = ""] of text.matchAll(/name="(\w+)" value="([^"]*)"/g)) fields.append(name, value);
    return fields;
  };
  const device = address.replace(/\?.*/, "");
  let { text } = await browser.visit(address);
  for (let step = 0; step < 3 && text.includes('name="xsrf"'); step += 1) {
    const body = form(text);
    body.set("user_code", new URL(address).searchParams.get("user_code") ?? "");
    body.set("confirm", "yes");
    ({ text } = await browser.visit(device, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: body.toString(),
    }));
  }
  return text;
}

describe("the command line's login", () => {
  let world: SignInWorld;
  beforeAll(async () => {
    world = await SignInWorld.start({ MUSTER_NICO_ORG: "acme" });
    world.provider.accounts.set("ann", { preferred_username: "ann", groups: ["gpu-admins"] });
    world.provider.accounts.set("eve", { preferred_username: "eve", groups: [] });
  });
  afterAll(() => world?.close());
  const fileOf = (home: string): string => join(home, ".local/state/muster/credentials.json");
  const homeOf = (name: string): string => join(world.folder, name);
  const stored = (home: string) => JSON.parse(readFileSync(fileOf(home), "utf8"));
  const login = async (home: string, account: string) => {
    const command = world.muster(["login"], { home });
    let told = "";
    command.stderr?.on("data", (part) => {
      told += String(part);
    });
    const address = await until("the address with the code", () => /(http:\S+user_code=\S+)/.exec(told)?.[1]);
    await approve(world, account, address);
    return { ...(await command), told };
  };
  const asked = (what: string): number => world.provider.asked.filter((one) => one === what).length;

  it("shows an address and a code, waits longer when the provider asks for that, and stores the login for its owner", async () => {
    const home = homeOf("ann");
    world.provider.slowDownOnce = true;
    const { exitCode, stdout, told } = await login(home, "ann");
    expect([exitCode, stdout]).toEqual([0, `Logged in at ${world.url} as oidc:ann with the role admin.`]);
    expect(told).toMatch(/Open http:\S+\/device in a browser and enter the code\n {2}[A-Z]{4}-[A-Z]{4}/);
    expect(world.provider.slowDownOnce).toBe(false);
    expect(statSync(fileOf(home)).mode & 0o777).toBe(0o600);
    expect(statSync(join(home, ".local/state/muster")).mode & 0o777).toBe(0o700);
    expect(Object.keys(stored(home).hubs)).toEqual([world.url]);
    const used = await world.muster(["get-hub-status", "--output", "json"], { home });
    expect(JSON.parse(used.stdout).you).toMatchObject({ name: "oidc:ann", role: "admin" });
  });

  const expire = (home: string): void => {
    const all = stored(home);
    all.hubs[world.url].expires_at = 0;
    writeFileSync(fileOf(home), JSON.stringify(all));
  };

  it("renews an expired access token once, even if several commands run", async () => {
    const home = homeOf("ann");
    const before = stored(home).hubs[world.url];
    expire(home);
    const renewals = asked("POST /token");
    const runs = await Promise.all([1, 2, 3].map(() => world.muster(["list-skus"], { home })));
    expect(runs.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual(Array(3).fill([0, ""]));
    expect(asked("POST /token") - renewals).toBe(1);
    expect(stored(home).hubs[world.url].refresh_token).not.toBe(before.refresh_token);
    expect(statSync(fileOf(home)).mode & 0o777).toBe(0o600);
    expect(existsSync(`${fileOf(home)}.lock`)).toBe(false);
  });

  it("is not used if other users may read its file", async () => {
    const home = homeOf("ann");
    chmodSync(fileOf(home), 0o640);
    const { exitCode, stderr } = await world.muster(["list-skus"], { home });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("Other users of this machine may read or change")]);
    chmodSync(fileOf(home), 0o600);
  });

  it("ends by a logout, of which the provider is told", async () => {
    const home = homeOf("ann");
    const revocations = asked("POST /token/revocation");
    const { refresh_token: token } = stored(home).hubs[world.url];
    expect(await world.muster(["logout"], { home })).toMatchObject({
      exitCode: 0,
      stdout: `Logged out at ${world.url}.`,
    });
    expect(asked("POST /token/revocation") - revocations).toBe(1);
    expect(readFileSync(fileOf(home), "utf8")).not.toContain(token);
    expect(await world.muster(["list-skus"], { home })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("has no token"),
    });
    expect(await world.muster(["logout"], { home })).toMatchObject({
      exitCode: 0,
      stdout: `There was no login at ${world.url}.`,
    });
  });

  it("says that a person has no role, and stores nothing", async () => {
    const home = homeOf("eve");
    const { exitCode, stderr } = await login(home, "eve");
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("no_role (403): You are signed in as oidc:eve")]);
    expect(existsSync(fileOf(home))).toBe(false);
  });

  it("takes a token from standard input, and refuses a wrong one", async () => {
    const home = homeOf("token");
    const wrong = await world.muster(["login", "--with-token"], { home, input: "wrong-token\n" });
    expect([wrong.exitCode, existsSync(fileOf(home))]).toEqual([1, false]);
    const right = await world.muster(["login", "--with-token"], { home, input: `${world.adminToken}\n` });
    expect([right.exitCode, right.stdout]).toEqual([0, `Logged in at ${world.url} as admin with the role admin.`]);
    expect((await world.muster(["list-skus"], { home })).exitCode).toBe(0);
    const out = await world.muster(["logout"], { home });
    expect(out.stderr).toContain("The token itself is still valid.");
  });

  it("says why the provider cannot be used", async () => {
    world.provider.failsWith = 503;
    const { exitCode, stderr } = await world.muster(["login"], { home: homeOf("late") });
    world.provider.failsWith = null;
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("could not be used")]);
  });

  describe("a machine with client credentials", () => {
    const tokenOf = async (): Promise<string> => {
      const basic = Buffer.from(`${MACHINE_CLIENT.id}:${MACHINE_CLIENT.secret}`).toString("base64");
      const answer = await fetch(`${world.provider.issuer}/token`, {
        method: "POST",
        headers: { authorization: `Basic ${basic}`, "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams({ grant_type: "client_credentials", scope: "muster", resource: RESOURCE }).toString(),
      });
      return ((await answer.json()) as { access_token: string }).access_token;
    };
    const ask = async (token: string, path = "/api/v1/admin/status") => {
      const answer = await fetch(`${world.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
      // biome-ignore lint/suspicious/noExplicitAny: the test looks into bodies of two kinds
      return { status: answer.status, body: (await answer.json()) as any };
    };

    it("has the role of its rule, on every hub", async () => {
      const { status, body } = await ask(await tokenOf());
      expect([status, body.you]).toMatchObject([200, { name: "oidc:scheduler", role: "provisioner" }]);
      expect((await ask(await tokenOf(), "/api/v1/admin/maas-sites")).status).toBe(403);
    });

    it("uses NICo's form of the API with the rights of its role", async () => {
      const refused = await ask(await tokenOf(), "/v2/org/acme/nico/site");
      expect([refused.status, Object.keys(refused.body).sort()]).toEqual([403, ["data", "message", "source"]]);
      const admin = await world.provider.accessToken({ groups: ["gpu-admins"] });
      expect(await ask(admin, "/v2/org/acme/nico/site")).toEqual({ status: 200, body: [] });
      expect((await ask(`${admin}x`, "/v2/org/acme/nico/site")).status).toBe(401);
    });

    it.each<[string, Record<string, unknown>, Record<string, unknown>, string]>([
      ["of another issuer", { iss: "https://evil.example" }, {}, "another issuer"],
      ["for another audience", { aud: "https://other.example" }, {}, "audiences"],
      ["that has expired", { exp: 1 }, {}, "expired"],
      ["of another typ, as an ID token has", {}, { typ: "JWT" }, "another typ"],
    ])("is refused with a token %s", async (_, claims, header, says) => {
      const { status, body } = await ask(
        await world.provider.accessToken({ groups: ["machines"], ...claims }, { header }),
      );
      expect([status, body.code, body.detail]).toEqual([401, "unauthenticated", expect.stringContaining(says)]);
    });

    it("is refused with an unsigned token, and without a role", async () => {
      const [, body = ""] = (await world.provider.accessToken({ groups: ["gpu-admins"] })).split(".");
      const none = Buffer.from(JSON.stringify({ alg: "none", typ: "at+jwt" })).toString("base64url");
      expect((await ask(`${none}.${body}.`)).body.detail).toContain("algorithm");
      expect((await ask(await world.provider.accessToken({ groups: ["x"] }))).body.code).toBe("no_role");
    });

    it("is served with the provider's next keys", async () => {
      const before = await tokenOf();
      await world.provider.rotateKey();
      const { body } = await until("the hub to read the next keys", async () => {
        const answer = await ask(await tokenOf());
        return answer.status === 200 ? answer : undefined;
      });
      expect(body.you.role).toBe("provisioner");
      expect((await ask(before)).status).toBe(401);
    });
  });
});
