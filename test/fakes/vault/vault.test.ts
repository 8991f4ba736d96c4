import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hubPolicy, SKIPPED, VAULTS, type VaultUnderTest } from "../../support/vault-under-test.ts";
import { startVault, type VaultServer } from "./server.ts";

interface Asked {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any shape, compared as a whole
  readonly body: any;
}
async function askAt(url: string, method: string, path: string, token: string, body?: unknown): Promise<Asked> {
  const answer = await fetch(`${url}/v1/${path}`, {
    method,
    headers: token === "" ? {} : { "X-Vault-Token": token },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === "" ? null : JSON.parse(text) };
}
const FORBIDDEN = { status: 403, body: { errors: ["1 error occurred:\n\t* permission denied\n\n"] } };
const DENIED = { status: 403, body: { errors: ["permission denied"] } };
const NOT_FOUND = { status: 404, body: { errors: [] } };
const DONE = { status: 204, body: null };
const refused = (status: number, error: string | RegExp) => ({
  status,
  body: { errors: [typeof error === "string" ? error : expect.stringMatching(error)] },
});

/** The tests run against the simulated Vault and a real Vault server, to prove that both give the same answers. */
it.skip.each(SKIPPED)("%s", () => undefined);
describe.each(Object.entries(VAULTS))("%s", (_name, start) => {
  let vault: VaultUnderTest;
  let all: string;
  let hub: string;
  let data: string;
  let metadata: string;
  let used = 0;
  const ask = (method: string, path: string, body?: unknown, token = all) =>
    askAt(vault.address.url, method, path, token, body);
  const put = (value: unknown, cas?: unknown) =>
    ask("POST", data, { data: value, ...(cas === undefined ? {} : { options: { cas } }) });

  beforeAll(async () => {
    vault = await start();
    const rights = ["create", "read", "update", "delete"] as const;
    await vault.setPolicy("all", {
      [`${vault.mount}/*`]: rights,
      [`${vault.version1}/*`]: rights,
      "none/*": rights,
    });
    await vault.setPolicy("hub", hubPolicy(vault.mount));
    await vault.setPolicy("reader", { [`${vault.mount}/metadata/*`]: ["read"] });
    all = await vault.createToken(["all"]);
    hub = await vault.createToken(["hub"]);
  });
  afterAll(() => vault?.close());
  beforeEach(() => {
    used += 1;
    [data, metadata] = [`${vault.mount}/data/a-${used}`, `${vault.mount}/metadata/a-${used}`];
  });
  afterEach(() => ask("DELETE", metadata));

  it("numbers versions, and refuses a check-and-set that does not match", async () => {
    expect(await ask("GET", data)).toEqual(NOT_FOUND);
    expect((await put({ v: "1" }, 0)).body.data).toMatchObject({ version: 1, deletion_time: "", destroyed: false });
    const late = "check-and-set parameter did not match the current version";
    expect(await put({ v: "2" }, 0)).toEqual(refused(400, late));
    expect(await put({ v: "2" }, 7)).toEqual(refused(400, late));
    expect(await put({ v: "2" }, "x")).toEqual(refused(400, "error parsing check-and-set parameter"));
    expect((await put({ v: "2" }, "1")).body.data.version).toBe(2);
    expect((await ask("GET", data)).body.data).toEqual({
      data: { v: "2" },
      metadata: expect.objectContaining({ version: 2, deletion_time: "", destroyed: false }),
    });
    expect((await ask("GET", `${data}?version=1`)).body.data.data).toEqual({ v: "1" });
    expect(await ask("GET", `${data}?version=3`)).toEqual(NOT_FOUND);
  });

  it("answers 404 with the number for a deleted or destroyed version, and continues the numbers", async () => {
    await put({ v: "1" });
    expect(await ask("DELETE", data)).toEqual(DONE);
    const gone = (version: number, destroyed: boolean) => ({
      status: 404,
      body: expect.objectContaining({
        data: { data: null, metadata: expect.objectContaining({ version, destroyed }) },
      }),
    });
    expect(await ask("GET", data)).toEqual(gone(1, false));
    expect((await put({ v: "2" }, 0)).status).toBe(400);
    expect((await put({ v: "2" }, 1)).body.data.version).toBe(2);
    expect(await ask("POST", data.replace("/data/", "/destroy/"), { versions: [2] })).toEqual(DONE);
    expect(await ask("GET", data)).toEqual(gone(2, true));
    expect((await put({ v: "3" }, 0)).status).toBe(400);
    expect((await put({ v: "3" }, 2)).body.data.version).toBe(3);
    const { status, body } = await ask("GET", metadata);
    expect([status, body.data.current_version, body.data.oldest_version]).toEqual([200, 3, 0]);
    expect(body.data.versions).toMatchObject({ 1: { destroyed: false }, 2: { destroyed: true } });
    expect(Object.keys(body.data.versions["3"]).sort()).toEqual(["created_time", "deletion_time", "destroyed"]);
    expect(await ask("DELETE", metadata)).toEqual(DONE);
    expect(await ask("GET", data)).toEqual(NOT_FOUND);
    expect(await ask("GET", metadata)).toEqual(NOT_FOUND);
    expect((await put({ v: "1" }, 0)).body.data.version).toBe(1);
  });

  it("drops the oldest of more than ten versions, and accepts the removal of an absent path", async () => {
    for (let version = 0; version < 12; version += 1) await put({ v: "1" }, version);
    expect(await ask("GET", `${data}?version=2`)).toEqual(NOT_FOUND);
    expect((await ask("GET", `${data}?version=3`)).status).toBe(200);
    expect((await ask("GET", metadata)).body.data.oldest_version).toBe(3);
    expect(await ask("DELETE", `${data}-never`)).toEqual(DONE);
    expect(await ask("DELETE", `${metadata}-never`)).toEqual(DONE);
  });

  it("accepts a version without fields, and refuses data that is not an object", async () => {
    expect((await put(null)).status).toBe(200);
    expect((await put({})).status).toBe(200);
    expect((await ask("GET", data)).body.data).toMatchObject({ data: {}, metadata: { version: 2 } });
    expect(await ask("POST", data, { v: "1" })).toEqual(refused(400, "no data provided"));
    expect(await ask("POST", data, "")).toEqual(refused(400, "no data provided"));
    expect(await put(["v"])).toEqual(refused(400, /^error converting input .* for field "data"/));
    expect(await put("v")).toEqual(refused(400, /^error converting input .* for field "data"/));
    expect(await ask("POST", data, "{")).toEqual(refused(400, /^failed to parse JSON input/));
    expect((await put({ v: "x".repeat(32 * 1024 * 1024) })).status).toBe(413);
    expect((await put({ v: "x".repeat(1024 * 1024) })).status).toBe(200);
  });

  it("refuses unknown paths", async () => {
    const { mount } = vault;
    const warned = { status: 404, body: expect.objectContaining({ data: null, warnings: [expect.any(String)] }) };
    expect(await ask("GET", `${mount}/other/a`)).toEqual(warned);
    expect(await ask("POST", `${mount}/other/data/a`, { data: {} })).toEqual(warned);
    expect(await ask("GET", `${mount}/data`)).toEqual(warned);
    expect(await ask("GET", `${data}/`)).toEqual(NOT_FOUND);
    expect(await ask("POST", `${data}/`, { data: {} })).toEqual(refused(400, "cannot write to a path ending in '/'"));
    for (const [method, path] of [
      ["GET", "none/data/a"],
      ["POST", "none/data/a"],
      ["DELETE", "none/metadata/a"],
    ] as const)
      expect(await ask(method, path)).toEqual(refused(404, /^no handler for route/));
  });

  it("stores any object in version 1, and returns no versions", async () => {
    const path = `${vault.version1}/data/a`;
    expect(await ask("GET", path)).toEqual(NOT_FOUND);
    expect(await ask("POST", path, { data: { v: "1" }, options: { cas: 0 } })).toEqual(DONE);
    expect((await ask("GET", path)).body.data).toEqual({ data: { v: "1" }, options: { cas: 0 } });
    expect(await ask("POST", path, {})).toEqual(refused(400, "missing data fields"));
    expect(await ask("DELETE", path)).toEqual(DONE);
    expect(await ask("GET", path)).toEqual(NOT_FOUND);
  });

  it("shows the mount of a path only to a token with a policy for it", async () => {
    const { mount, version1 } = vault;
    const at = (path: string, token?: string) => ask("GET", `sys/internal/ui/mounts/${path}`, undefined, token);
    expect((await at(mount, hub)).body.data).toMatchObject({
      path: `${mount}/`,
      type: "kv",
      options: { version: "2" },
    });
    expect((await at(`${mount}/below/it`, hub)).body.data.path).toBe(`${mount}/`);
    expect((await at(version1)).body.data).toMatchObject({ path: `${version1}/`, options: { version: "1" } });
    expect(await at(version1, hub)).toEqual(refused(403, /^preflight capability check returned 403/));
    expect(await at("none")).toEqual(refused(403, /^preflight capability check returned 403/));
    expect(await at(mount, "nobody's")).toEqual(DENIED);
    expect(await at(mount, "")).toEqual(refused(500, "missing client token"));
  });

  it("distinguishes a missing token from a missing policy", async () => {
    for (const path of [data, "none/data/a", "auth/token/lookup-self"]) {
      expect(await ask("GET", path, undefined, "")).toEqual(refused(400, "missing client token"));
      expect(await ask("GET", path, undefined, "nobody's")).toEqual(DENIED);
    }
    expect(await ask("GET", data, undefined, hub)).toEqual(NOT_FOUND);
    expect(await ask("GET", metadata, undefined, hub)).toEqual(FORBIDDEN);
    expect(await ask("DELETE", data, undefined, hub)).toEqual(FORBIDDEN);
    expect(await ask("GET", "none/data/a", undefined, hub)).toEqual(FORBIDDEN);
    expect(await ask("DELETE", metadata, undefined, hub)).toEqual(DONE);
    const token = await vault.createToken(["hub"]);
    await vault.revokeToken(token);
    expect(await ask("GET", data, undefined, token)).toEqual(DENIED);
    expect(await ask("GET", "auth/token/lookup-self", undefined, token)).toEqual(DENIED);
  });

  it("treats the first write of a path as create, and each later write as update, also after a deletion", async () => {
    await vault.setPolicy("creator", { [`${vault.mount}/data/*`]: ["create"] });
    await vault.setPolicy("updater", { [`${vault.mount}/data/*`]: ["update"] });
    const [creator, updater] = [await vault.createToken(["creator"]), await vault.createToken(["updater"])];
    const write = async (token: string) => (await ask("POST", data, { data: { v: "1" } }, token)).status;
    expect([await write(updater), await write(creator), await write(creator), await write(updater)]).toEqual([
      403, 200, 403, 200,
    ]);
    await ask("DELETE", data);
    expect([await write(creator), await write(updater)]).toEqual([403, 200]);
    await ask("DELETE", metadata);
    expect([await write(updater), await write(creator)]).toEqual([403, 200]);
  });

  it("applies only the most specific matching rule of all policies", async () => {
    const both = await vault.createToken(["all", "hub"]);
    expect(await ask("GET", metadata, undefined, both)).toEqual(FORBIDDEN);
    const three = await vault.createToken(["all", "hub", "reader"]);
    expect(await ask("GET", metadata, undefined, three)).toEqual(NOT_FOUND);
    expect(await ask("DELETE", metadata, undefined, three)).toEqual(DONE);
  });

  it("lets a token look up, renew and revoke itself, when it has the default policy", async () => {
    const own = (name: string, token: string) =>
      ask(
        name === "lookup-self" ? "GET" : "POST",
        `auth/token/${name}`,
        name === "lookup-self" ? undefined : {},
        token,
      );
    const token = await vault.createToken(["hub"]);
    const looked = await own("lookup-self", token);
    expect([looked.status, looked.body.data.renewable, looked.body.data.policies[0]]).toEqual([200, true, "default"]);
    expect(looked.body.data.ttl).toBeGreaterThan(3500);
    const renewed = await own("renew-self", token);
    expect([renewed.status, renewed.body.auth.lease_duration, renewed.body.auth.renewable]).toEqual([200, 3600, true]);
    expect(await own("revoke-self", token)).toEqual(DONE);
    expect(await own("lookup-self", token)).toEqual(DENIED);
    const role = await vault.addRole(["hub"]);
    await role.change({ defaultPolicy: false });
    const bare = (await login(role.roleId, await role.newSecretId())).body.auth.client_token;
    for (const name of ["lookup-self", "renew-self", "revoke-self"]) expect(await own(name, bare)).toEqual(FORBIDDEN);
    expect(await ask("GET", data, undefined, bare)).toEqual(NOT_FOUND);
  });

  const login = (roleId: unknown, secretId: unknown) =>
    ask("POST", `auth/${vault.roleMount}/login`, { role_id: roleId, secret_id: secretId }, "");

  it("logs a role in as often as its secret ID allows, with the policies that the role has at that time", async () => {
    const role = await vault.addRole(["hub"]);
    const secretId = await role.newSecretId({ uses: 2 });
    const first = await login(role.roleId, secretId);
    expect([first.status, first.body.auth]).toEqual([
      200,
      expect.objectContaining({ lease_duration: 3600, renewable: true, client_token: expect.any(String) }),
    ]);
    expect((await login(role.roleId, secretId)).status).toBe(200);
    expect(await login(role.roleId, secretId)).toEqual(refused(400, "invalid secret id"));
    expect(await login(role.roleId, "wrong")).toEqual(refused(400, "invalid secret id"));
    expect(await login(role.roleId, "")).toEqual(refused(400, "missing secret_id"));
    expect(await login("wrong", secretId)).toEqual(refused(400, "invalid role ID"));
    expect(await login("", secretId)).toEqual(refused(400, "missing role_id"));
    expect(await ask("GET", `auth/${vault.roleMount}/login`, undefined, "")).toEqual(
      refused(405, "unsupported operation"),
    );
    expect(await ask("POST", "auth/none/login", {}, "")).toEqual(refused(400, "missing client token"));
    const early = first.body.auth.client_token;
    await role.change({ policies: ["hub", "reader"] });
    expect(await ask("GET", metadata, undefined, early)).toEqual(FORBIDDEN);
    const late = (await login(role.roleId, await role.newSecretId())).body.auth.client_token;
    expect(await ask("GET", metadata, undefined, late)).toEqual(NOT_FOUND);
  });
});

describe("the simulation of Vault alone", () => {
  let server: VaultServer;
  let token: string;
  beforeEach(async () => {
    server = await startVault();
    server.vault.mount("kv");
    server.vault.tokens.policies.set("all", { "kv/*": ["create", "read", "update", "delete"] });
    token = server.vault.tokens.create({ policies: ["all"], ttl: 60, maxTtl: 100 });
  });
  afterEach(() => server.close());
  const ask = (method: string, path: string, body?: unknown) => askAt(server.url, method, path, token, body);

  it("ends a token with its lease, and at its maximum age in spite of renewals", async () => {
    const ttl = async () => (await ask("GET", "auth/token/lookup-self")).body?.data?.ttl;
    const { clock } = server.vault;
    expect(await ttl()).toBe(60);
    clock.advance(50);
    expect((await ask("POST", "auth/token/renew-self", {})).body.auth.lease_duration).toBe(50);
    clock.advance(49);
    expect((await ask("POST", "auth/token/renew-self", {})).body.auth.lease_duration).toBe(1);
    clock.advance(0.5);
    expect((await ask("POST", "auth/token/renew-self", {})).body.auth).toMatchObject({
      lease_duration: 0,
      renewable: true,
    });
    clock.advance(0.5);
    expect(await ask("GET", "auth/token/lookup-self")).toEqual(DENIED);
  });

  it("ends a secret ID after its time", async () => {
    const role = server.vault.tokens.addRole();
    const body = { role_id: role.roleId, secret_id: role.newSecretId({ ttl: 60 }) };
    expect((await ask("POST", "auth/approle/login", body)).status).toBe(200);
    server.vault.clock.advance(60);
    expect(await ask("POST", "auth/approle/login", body)).toEqual(refused(400, "invalid secret id"));
  });

  it("refuses every request while it is sealed", async () => {
    server.vault.seal();
    const sealed = refused(503, "error performing token check: Vault is sealed");
    for (const path of ["kv/data/a", "auth/token/lookup-self", "sys/internal/ui/mounts/kv", "none"])
      expect(await ask("GET", path)).toEqual(sealed);
    expect(await ask("POST", "auth/approle/login", {})).toEqual(sealed);
  });

  it("refuses an unknown namespace", async () => {
    const answer = await fetch(`${server.url}/v1/kv/data/a`, {
      headers: { "X-Vault-Token": token, "X-Vault-Namespace": "x" },
    });
    expect(answer.status).toBe(403);
  });
});
