import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLog } from "../../shared/log.ts";
import { VaultFault } from "../../test/fakes/vault/answer.ts";
import { startVault, type VaultServer } from "../../test/fakes/vault/server.ts";
import { quietLog } from "../../test/support/log.ts";
import { until } from "../../test/support/until.ts";
import { hubPolicy, SKIPPED, VAULTS } from "../../test/support/vault-under-test.ts";
import { SecretError } from "./port.ts";
import { openVaultStore, type VaultStore } from "./vault.ts";
import { FRUITLESS_MS } from "./vault-hold.ts";
import type { VaultCredentials } from "./vault-login.ts";

const folder = mkdtempSync(join(tmpdir(), "muster-vault-login-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const secretFile = join(folder, "secret");
const opened: VaultStore[] = [];
afterEach(() => {
  for (const store of opened.splice(0)) store.close();
});

const errorOf = (promise: Promise<unknown>): Promise<SecretError> =>
  promise.then(
    () => Promise.reject(new Error("nothing was thrown")),
    (error: unknown) => (error instanceof SecretError ? error : Promise.reject(error)),
  );
const codeOf = async (promise: Promise<unknown>): Promise<string> => (await errorOf(promise)).code;

describe("the Vault token", () => {
  let server: VaultServer;
  let lines: string[];
  beforeEach(async () => {
    server = await startVault();
    server.vault.mount("kv");
    server.vault.tokens.policies.set("muster", hubPolicy("kv"));
    lines = [];
  });
  afterEach(() => server.close());

  function open(credentials: VaultCredentials = { kind: "token", tokenFile: secretFile }): VaultStore {
    const store = openVaultStore({
      address: { url: server.url, namespace: null, ca: null, deadlineMs: 5_000 },
      mount: "kv",
      credentials,
      log: createLog("debug", (line) => lines.push(line)),
      clock: server.vault.clock,
    });
    opened.push(store);
    return store;
  }
  const byToken = (terms: Parameters<VaultServer["vault"]["tokens"]["create"]>[0] = {}) => {
    const token = server.vault.tokens.create({ policies: ["muster"], ...terms });
    writeFileSync(secretFile, `${token}\n`);
    return token;
  };
  function byRole(terms: Parameters<VaultServer["vault"]["tokens"]["addRole"]>[0] = {}) {
    const role = server.vault.tokens.addRole({ policies: ["muster"], ...terms });
    writeFileSync(secretFile, role.newSecretId());
    const credentials = {
      kind: "approle",
      mount: "approle",
      roleId: role.roleId,
      secretIdFile: secretFile,
    } as const;
    return { ...role, credentials };
  }

  const asked = (path: string) => server.vault.calls.filter((call) => call.endsWith(path)).length;

  it("is renewed at about half of its lease while Vault allows that, and then replaced by an AppRole login", async () => {
    const { credentials } = byRole({ ttl: 60, maxTtl: 130 });
    const store = open(credentials);
    const { tokens, clock } = server.vault;
    await store.write("kv/a", { v: "1" });
    for (let day = 0; day < 12; day += 1) {
      const before = clock.now();
      const [renewals, logins] = [tokens.renewals, tokens.logins];
      clock.fire();
      const passed = (clock.now() - before) / 1000;
      expect(passed).toBeGreaterThanOrEqual(1);
      expect(passed).toBeLessThanOrEqual(36);
      await until("the lease was seen to", () =>
        tokens.renewals + tokens.logins > renewals + logins ? true : undefined,
      );
      // The test knows that Vault's answer has arrived when a read has succeeded and the hub has planned its next step for the token.
      await until("the next step is planned", () => (clock.pending > 0 ? true : undefined));
      expect(await store.read("kv/a")).toEqual({ v: "1" });
    }
    expect([tokens.renewals > 2, tokens.logins > 2]).toEqual([true, true]);
  });

  it("is replaced when it has ended, and the call that found this succeeds", async () => {
    const { credentials } = byRole();
    const store = open(credentials);
    await store.write("kv/a", { v: "1" });
    server.vault.tokens.revokeAll();
    const reads = await Promise.all(Array.from({ length: 5 }, () => store.read("kv/a")));
    expect(reads).toEqual(Array.from({ length: 5 }, () => ({ v: "1" })));
    expect(server.vault.tokens.logins).toBe(2);
    server.vault.clock.advance(7200);
    expect(await store.read("kv/a")).toEqual({ v: "1" });
    expect(server.vault.tokens.logins).toBe(3);
  });

  it("is left alone if it cannot be renewed, and AppRole logs in again before it ends", async () => {
    const { credentials } = byRole({ renewable: false });
    const store = open(credentials);
    await store.check();
    server.vault.clock.fire();
    await until("a second login", () => (server.vault.tokens.logins === 2 ? true : undefined));
    expect(server.vault.tokens.renewals).toBe(0);
    byToken({ ttl: 60, renewable: false });
    await open().check();
    expect(server.vault.calls.filter((call) => call.includes("renew-self"))).toEqual([]);
  });

  it("is read from its file again when it has ended, without a restart", async () => {
    byToken({ ttl: 60 });
    const store = open();
    await store.write("kv/a", { v: "1" });
    server.vault.clock.advance(61);
    expect((await errorOf(store.read("kv/a"))).code).toBe("secret_store_login_refused");
    byToken();
    expect(await store.read("kv/a")).toEqual({ v: "1" });
  });

  it("is not requested again with a login that Vault refused", async () => {
    const role = byRole();
    const used = { ...role.credentials, secretIdFile: join(folder, "used") };
    writeFileSync(used.secretIdFile, role.newSecretId({ uses: 1 }));
    const store = open(used);
    await store.write("kv/a", { v: "1" });
    server.vault.tokens.revokeAll();
    const error = await errorOf(store.read("kv/a"));
    expect([error.code, error.isRefusal]).toEqual(["secret_store_login_refused", true]);
    writeFileSync(used.secretIdFile, role.newSecretId());
    expect(await store.read("kv/a")).toEqual({ v: "1" });
  });

  it("survives an outage of Vault at the time of its renewal", async () => {
    byToken({ ttl: 60 });
    const store = open();
    await store.write("kv/a", { v: "1" });
    const { clock, tokens } = server.vault;
    server.vault.seal();
    clock.fire();
    await until("a warning", () => (lines.some((line) => line.includes("could not be renewed")) ? true : undefined));
    await until("another try is planned", () => (clock.pending > 0 ? true : undefined));
    server.vault.unseal();
    clock.fire();
    await until("the renewal", () => (tokens.renewals === 1 ? true : undefined));
    expect(await store.read("kv/a")).toEqual({ v: "1" });
  });

  it("appears in no log line, and neither does a secret that is read with it", async () => {
    const { credentials } = byRole({ ttl: 60 });
    const store = open(credentials);
    await store.write("kv/a", { v: "canary-value" });
    await store.read("kv/a");
    server.vault.tokens.revokeAll();
    await store.read("kv/a");
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.join("\n")).not.toMatch(/hvs[.]|canary-value/);
  });

  it("is replaced for a forbidden call, because its role may have a new policy, at most once a minute", async () => {
    const { credentials, change } = byRole({ policies: [] });
    const store = open(credentials);
    const { tokens, clock } = server.vault;
    for (let again = 0; again < 3; again += 1) expect(await codeOf(store.read("kv/a"))).toBe("secret_store_forbidden");
    expect(tokens.logins).toBe(2);
    change({ policies: ["muster"] });
    expect(await codeOf(store.read("kv/a"))).toBe("secret_store_forbidden");
    clock.advance(FRUITLESS_MS / 1000);
    expect(await codeOf(store.read("kv/a"))).toBe("secret_missing");
    await store.write("kv/a", { v: "1" });
    expect(tokens.logins).toBe(3);
    // Each new Vault token replaces the previous Vault token, which the hub then revokes.
    await until("one token is left", () => (tokens.living === 1 ? true : undefined));
  });

  it("is read from its file again for a forbidden call, which is not repeated if the token is the same", async () => {
    byToken({ policies: [] });
    const store = open();
    for (let again = 0; again < 3; again += 1) expect(await codeOf(store.read("kv/a"))).toBe("secret_store_forbidden");
    expect(asked("data/a")).toBe(3);
    byToken();
    server.vault.clock.advance(FRUITLESS_MS / 1000);
    expect(await codeOf(store.read("kv/a"))).toBe("secret_missing");
    expect(server.vault.calls.filter((call) => call.includes("revoke-self"))).toEqual([]);
  });

  it("is kept if it is valid and a new login is refused, and the forbidden call stays forbidden", async () => {
    const { credentials, newSecretId } = byRole();
    const { clock, tokens } = server.vault;
    writeFileSync(secretFile, newSecretId({ uses: 1 }));
    const store = open(credentials);
    await store.write("kv/a", { v: "1" });
    tokens.policies.set("muster", { "kv/data/a": ["read"] });
    expect(await codeOf(store.write("kv/a", { v: "2" }))).toBe("secret_store_forbidden");
    clock.advance(FRUITLESS_MS / 1000);
    expect(await codeOf(store.write("kv/a", { v: "2" }))).toBe("secret_store_forbidden");
    expect(await store.read("kv/a")).toEqual({ v: "1" });
    expect(tokens.logins).toBe(1);
  });

  it("does not make other calls forbidden if it ends within a minute of a forbidden call", async () => {
    const { credentials } = byRole();
    const store = open(credentials);
    await store.write("kv/a", { v: "1" });
    const { tokens } = server.vault;
    tokens.policies.set("muster", { "kv/data/a": ["read"] });
    expect(await codeOf(store.remove("kv/a"))).toBe("secret_store_forbidden");
    tokens.revokeAll();
    expect(await store.read("kv/a")).toEqual({ v: "1" });
    expect(tokens.logins).toBe(3);
    expect(await codeOf(store.remove("kv/a"))).toBe("secret_store_forbidden");
    expect(tokens.logins).toBe(3);
  });

  it("does not count as forbidden if it was revoked while a second call used it", async () => {
    const { credentials } = byRole({ renewable: false });
    const store = open(credentials);
    await store.write("kv/a", { v: "1" });
    const { tokens, clock } = server.vault;
    tokens.revokeAll();
    let reads = 0;
    server.arriving = async (call) => {
      if (call !== "GET kv/data/a") return;
      reads += 1;
      if (reads !== 2) return;
      clock.fire();
      await until("a third login takes the place of the second", () =>
        tokens.logins === 3 && tokens.living === 1 ? true : undefined,
      );
    };
    expect(await store.read("kv/a")).toEqual({ v: "1" });
    expect([reads, tokens.logins]).toEqual([3, 3]);
  });

  it("keeps the schedule of its own lease when the renewal of the previous token fails late", async () => {
    const { credentials } = byRole({ ttl: 60 });
    const store = open(credentials);
    await store.write("kv/a", { v: "1" });
    const { tokens, clock } = server.vault;
    server.arriving = async (call) => {
      if (!call.endsWith("renew-self")) return;
      server.arriving = async () => undefined;
      tokens.revokeAll();
      await store.read("kv/a");
      server.vault.failing = new VaultFault(500, []);
    };
    clock.fire();
    await until("a warning", () => (lines.some((line) => line.includes("could not be renewed")) ? true : undefined));
    server.vault.failing = null;
    const before = clock.now();
    expect(clock.fire()).toBe(true);
    expect(clock.now() - before).toBeGreaterThanOrEqual(0.4 * 60_000);
  });

  it("works even if it may not look itself up", async () => {
    const { credentials } = byRole({ defaultPolicy: false });
    const store = open(credentials);
    await store.write("kv/a", { v: "1" });
    server.vault.tokens.revokeAll();
    expect(await store.read("kv/a")).toEqual({ v: "1" });
    server.vault.clock.fire();
    await until("a login in the place of the renewal", () => (server.vault.tokens.logins === 3 ? true : undefined));
    server.vault.tokens.policies.set("muster", {});
    for (let again = 0; again < 3; again += 1) expect(await codeOf(store.read("kv/a"))).toBe("secret_store_forbidden");
    expect(server.vault.tokens.logins).toBe(4);
  });

  it("is requested with a refused secret ID only after 1, 4 and 16 minutes, and at once with another secret ID", async () => {
    const { credentials, newSecretId } = byRole();
    const { clock } = server.vault;
    writeFileSync(secretFile, "wrong");
    const store = open(credentials);
    const tries = async () => {
      const calls = [store.read("kv/a"), store.write("kv/a", { v: "1" }), store.remove("kv/a"), store.check()];
      expect(await Promise.all(calls.map(codeOf))).toEqual(calls.map(() => "secret_store_login_refused"));
      return asked("approle/login");
    };
    const logins = [await tries(), await tries()];
    for (const minutes of [1, 3, 1, 15, 1, 15, 1]) {
      clock.advance(minutes * 60);
      logins.push(await tries());
    }
    expect(logins).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5]);
    // If the modification time of a credential's file has changed, the file's content may be valid now.
    utimesSync(secretFile, new Date(), new Date(Date.now() + 60_000));
    expect([await tries(), await tries()]).toEqual([6, 6]);
    clock.advance(60);
    expect(await tries()).toBe(7);
    writeFileSync(secretFile, newSecretId());
    await store.write("kv/a", { v: "1" });
    expect(asked("approle/login")).toBe(8);
  });

  it("is requested at once after an outage of Vault", async () => {
    const { credentials } = byRole();
    const store = open(credentials);
    server.vault.seal();
    for (let again = 0; again < 3; again += 1) expect(await codeOf(store.check())).toBe("secret_store_sealed");
    server.vault.unseal();
    await store.check();
    expect(asked("approle/login")).toBe(4);
  });

  it("is not requested every second during the rest of a long lease without a working login", async () => {
    const { credentials } = byRole({ ttl: 3600, renewable: false });
    const store = open(credentials);
    await store.write("kv/a", { v: "1" });
    writeFileSync(secretFile, "wrong");
    const { clock } = server.vault;
    const start = clock.now();
    const warnings = () => lines.filter((line) => line.includes("could not be renewed")).length;
    while (clock.now() - start < 3600_000) {
      const before = warnings();
      clock.fire();
      await until("the step is over and the next one planned", () =>
        warnings() > before && clock.pending > 0 ? true : undefined,
      );
    }
    expect(warnings()).toBeLessThanOrEqual(14);
    expect(asked("approle/login")).toBeLessThanOrEqual(6);
    expect(await codeOf(store.read("kv/a"))).toBe("secret_store_login_refused");
    expect(clock.pending).toBe(0);
  });
});

it.skip.each(SKIPPED)("%s", () => undefined);
describe.each(Object.entries(VAULTS))("%s", (_name, start) => {
  it("is obtained again after its token was revoked or its role got a policy, while the secret ID is valid", async () => {
    const vault = await start();
    const { address, mount, roleMount } = vault;
    await vault.setPolicy("hub", hubPolicy(mount));
    const role = await vault.addRole([]);
    const file = join(folder, "secret-id");
    writeFileSync(file, await role.newSecretId({ uses: 4 }));
    // The test changes only the hub's clock, because the test cannot set the clock of its Vault server.
    let now = 0;
    const store = openVaultStore({
      address: { ...address, deadlineMs: 10_000 },
      mount,
      credentials: { kind: "approle", mount: roleMount, roleId: role.roleId, secretIdFile: file },
      log: quietLog,
      clock: { now: () => now, timer: () => () => undefined },
    });
    opened.push(store);
    expect(await codeOf(store.check())).toBe("secret_store_misconfigured");
    expect(await codeOf(store.write("kv/a", { v: "1" }))).toBe("secret_store_forbidden");
    await role.change({ policies: ["hub"] });
    now += FRUITLESS_MS;
    await store.check();
    await store.write("kv/a", { v: "1" });
    await vault.revokeRoleTokens();
    expect(await store.read("kv/a")).toEqual({ v: "1" });
    await vault.revokeRoleTokens();
    expect(await codeOf(store.read("kv/a"))).toBe("secret_store_login_refused");
    writeFileSync(file, await role.newSecretId());
    expect(await store.read("kv/a")).toEqual({ v: "1" });
    await store.remove("kv/a");
    await vault.close();
  });
});
