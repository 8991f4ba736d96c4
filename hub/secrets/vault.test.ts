import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect, promisify } from "node:util";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { VaultFault } from "../../test/fakes/vault/answer.ts";
import { startVault, type VaultServer } from "../../test/fakes/vault/server.ts";
import { MemorySecrets } from "../../test/support/memory-secrets.ts";
import { until } from "../../test/support/until.ts";
import { openCertificateAuthority } from "../gateway/certificate-authority.ts";
import { createLog } from "../log.ts";
import { openSecrets } from "./open.ts";
import { SecretError } from "./port.ts";
import { openVaultStore, type VaultOptions, type VaultStore } from "./vault.ts";
import { nextStep } from "./vault-lease.ts";

const folder = mkdtempSync(join(tmpdir(), "muster-vault-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const POLICY = { "kv/data/*": ["create", "read", "update"], "kv/metadata/*": ["delete"] } as const;

let server: VaultServer;
let lines: string[];
let opened: VaultStore[];
const secretFile = join(folder, "secret");
beforeEach(async () => {
  server = await startVault();
  server.vault.mount("kv");
  server.vault.tokens.policies.set("muster", POLICY);
  lines = [];
  opened = [];
});
afterEach(async () => {
  for (const store of opened) store.close();
  await server.close();
});

function open(options: Partial<VaultOptions> & Partial<VaultOptions["address"]> = {}): VaultStore {
  const store = openVaultStore({
    address: { url: server.url, namespace: null, ca: null, deadlineMs: 5_000, ...options },
    mount: "kv",
    credentials: { kind: "token", tokenFile: secretFile },
    log: createLog("debug", (line) => lines.push(line)),
    timer: server.vault.clock.timer,
    ...options,
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
const errorOf = (promise: Promise<unknown>): Promise<SecretError> =>
  promise.then(
    () => Promise.reject(new Error("nothing was thrown")),
    (error: unknown) => (error instanceof SecretError ? error : Promise.reject(error)),
  );

describe("what Vault refuses, or cannot", () => {
  const CASES: readonly [string, string, RegExp, () => void][] = [
    ["a sealed one", "secret_store_sealed", /Unseal it/, () => server.vault.seal()],
    ["one that fails", "secret_store_unavailable", /status 500/, () => fails(500, "internal error")],
    ["a quota", "secret_store_unavailable", /status 429/, () => fails(429, "request path: rate limit quota exceeded")],
    ["no policy for the path", "secret_store_forbidden", /rights/, () => grants({ "kv/data/other": ["read"] })],
    ["a token that is gone", "secret_store_login_refused", /no restart/, () => server.vault.tokens.revokeAll()],
    ["one that sends away", "secret_store_misconfigured", /redirects/, () => server.redirect(server.url)],
    ["an empty token file", "secret_store_misconfigured", /empty/, () => writeFileSync(secretFile, "\n")],
    ["no token file", "secret_store_misconfigured", /cannot be read/, () => rmSync(secretFile)],
  ];
  const fails = (status: number, error: string) => {
    server.vault.failing = new VaultFault(status, [error]);
  };
  const grants = (policy: Record<string, readonly "read"[]>) => server.vault.tokens.policies.set("muster", policy);

  it.each(CASES)("%s is %s", async (_name, code, says, arrange) => {
    byToken();
    arrange();
    const store = open();
    for (const call of [store.read("kv/a"), store.write("kv/a", { v: "canary-value" }), store.remove("kv/a")]) {
      const error = await errorOf(call);
      expect([error.code, error.message]).toEqual([code, expect.stringMatching(says)]);
      expect(inspect(error, { depth: 9 })).not.toMatch(/canary-value|hvs[.]/);
    }
  });

  it("gives up at its deadline, and finds nobody where nothing listens", async () => {
    byToken();
    server.silent = true;
    const late = await errorOf(open({ deadlineMs: 100 }).read("kv/a"));
    expect([late.code, late.isAway]).toEqual(["secret_store_timeout", true]);
    const nobody = await startVault();
    await nobody.close();
    const away = await errorOf(open({ url: nobody.url }).read("kv/a"));
    expect([away.code, away.isAway]).toEqual(["secret_store_unavailable", true]);
    expect(away.message).toMatch(/ECONNREFUSED/);
  });

  it("is told at the start what is wrong with the mount", async () => {
    byToken();
    server.vault.mountVersion1("old");
    server.vault.tokens.policies.set("muster", { ...POLICY, "old/*": ["read"], "gone/*": ["read"] });
    await open().check();
    for (const [mount, says] of [
      ["old", /not KV version 2/],
      ["gone", /nothing mounted/],
      ["forbidden", /nothing mounted/],
    ] as const) {
      const error = await errorOf(open({ mount }).check());
      expect([error.code, error.isRefusal, error.message]).toEqual([
        "secret_store_misconfigured",
        true,
        expect.stringMatching(says),
      ]);
    }
    expect((await errorOf(open({ mount: "gone" }).read("kv/a"))).code).toBe("secret_store_misconfigured");
  });

  it("calls no Vault what answers without JSON", async () => {
    byToken();
    const page = createServer((_request, response) => response.end("<p>Welcome</p>"));
    await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve));
    const error = await errorOf(open({ url: `http://127.0.0.1:${(page.address() as AddressInfo).port}` }).read("kv/a"));
    page.close();
    expect([error.code, error.message]).toEqual(["secret_store_unavailable", expect.stringMatching(/not JSON/)]);
  });

  it("refuses a secret with a field that is no text, and does not quote it", async () => {
    const token = byToken();
    const url = `${server.url}/v1/kv/data/a`;
    const body = JSON.stringify({ data: { pin: 31337 } });
    await fetch(url, { method: "POST", headers: { "X-Vault-Token": token }, body });
    const error = await errorOf(open().read("kv/a"));
    expect(error.code).toBe("secret_corrupt");
    expect(inspect(error)).not.toContain("31337");
  });
});

describe("the token", () => {
  it("is renewed at about half of its lease for as long as Vault lets it, and then got anew by AppRole", async () => {
    const { credentials } = byRole({ ttl: 60, maxTtl: 130 });
    const store = open({ credentials });
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
      // The answer has come once a read is through and the next step is planned.
      await until("the next step is planned", () => (clock.pending > 0 ? true : undefined));
      expect(await store.read("kv/a")).toEqual({ v: "1" });
    }
    expect([tokens.renewals > 2, tokens.logins > 2]).toEqual([true, true]);
  });

  it("is got anew when it is gone, and the call that met it goes through", async () => {
    const { credentials } = byRole();
    const store = open({ credentials });
    await store.write("kv/a", { v: "1" });
    server.vault.tokens.revokeAll();
    const reads = await Promise.all(Array.from({ length: 5 }, () => store.read("kv/a")));
    expect(reads).toEqual(Array.from({ length: 5 }, () => ({ v: "1" })));
    expect(server.vault.tokens.logins).toBe(2);
    server.vault.clock.advance(7200);
    expect(await store.read("kv/a")).toEqual({ v: "1" });
    expect(server.vault.tokens.logins).toBe(3);
  });

  it("that cannot be renewed is left alone, and AppRole logs in again before it ends", async () => {
    const { credentials } = byRole({ renewable: false });
    const store = open({ credentials });
    await store.check();
    server.vault.clock.fire();
    await until("a second login", () => (server.vault.tokens.logins === 2 ? true : undefined));
    expect(server.vault.tokens.renewals).toBe(0);
    byToken({ ttl: 60, renewable: false });
    await open().check();
    expect(server.vault.calls.filter((call) => call.includes("renew-self"))).toEqual([]);
  });

  it("of a file is taken from there again when it is gone, without a restart", async () => {
    byToken({ ttl: 60 });
    const store = open();
    await store.write("kv/a", { v: "1" });
    server.vault.clock.advance(61);
    expect((await errorOf(store.read("kv/a"))).code).toBe("secret_store_login_refused");
    byToken();
    expect(await store.read("kv/a")).toEqual({ v: "1" });
  });

  it("is not asked for again by a login that Vault refuses", async () => {
    const role = byRole();
    const used = { ...role.credentials, secretIdFile: join(folder, "used") };
    writeFileSync(used.secretIdFile, role.newSecretId(1));
    const store = open({ credentials: used });
    await store.write("kv/a", { v: "1" });
    server.vault.tokens.revokeAll();
    const error = await errorOf(store.read("kv/a"));
    expect([error.code, error.isRefusal]).toEqual(["secret_store_login_refused", true]);
    writeFileSync(used.secretIdFile, role.newSecretId());
    expect(await store.read("kv/a")).toEqual({ v: "1" });
  });

  it("outlives a Vault that is away when it is to be renewed", async () => {
    byToken({ ttl: 60 });
    const store = open();
    await store.write("kv/a", { v: "1" });
    const { clock, tokens } = server.vault;
    server.vault.seal();
    clock.fire();
    await until("a warning", () => (lines.some((line) => line.includes("not prolonged")) ? true : undefined));
    await until("another try is planned", () => (clock.pending > 0 ? true : undefined));
    server.vault.unseal();
    clock.fire();
    await until("the renewal", () => (tokens.renewals === 1 ? true : undefined));
    expect(await store.read("kv/a")).toEqual({ v: "1" });
  });

  it("stands in no log line, and neither does what is read with it", async () => {
    const { credentials } = byRole({ ttl: 60 });
    const store = open({ credentials });
    await store.write("kv/a", { v: "canary-value" });
    await store.read("kv/a");
    server.vault.tokens.revokeAll();
    await store.read("kv/a");
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.join("\n")).not.toMatch(/hvs[.]|canary-value/);
  });

  it("is not printed by the library either, although DEBUG asks for that", async () => {
    byToken();
    const script = `
      import { openVaultStore } from ${JSON.stringify(new URL("./vault.ts", import.meta.url).href)};
      const [url, tokenFile] = process.argv.slice(1);
      const log = { info: () => undefined, warn: () => undefined };
      const address = { url, namespace: null, ca: null, deadlineMs: 5000 };
      const store = openVaultStore({ address, mount: "kv", credentials: { kind: "token", tokenFile }, log });
      await store.write("kv/a", { v: "canary-value" });
      console.log(Object.keys(await store.read("kv/a")).join());`;
    const ran = await promisify(execFile)(
      process.execPath,
      ["--input-type=module", "-e", script, server.url, secretFile],
      { env: { ...process.env, DEBUG: "*" } },
    );
    expect(ran.stdout).toBe("v\n");
    expect(ran.stderr).not.toMatch(/hvs[.]|canary-value/);
  });
});

describe("where Vault is", () => {
  it("takes nothing from the environment that its settings do not say", async () => {
    byToken();
    vi.stubEnv("VAULT_TOKEN", "hvs.of-somebody-else");
    vi.stubEnv("VAULT_NAMESPACE", "elsewhere");
    vi.stubEnv("VAULT_PREFIX", "/elsewhere");
    vi.stubEnv("HTTP_PROXY", "http://127.0.0.1:1");
    const store = open();
    await store.write("kv/a", { v: "1" });
    vi.unstubAllEnvs();
    expect(await store.read("kv/a")).toEqual({ v: "1" });
  });

  it("may be a namespace, and a mount of more than one name", async () => {
    server.vault.addNamespace("team");
    const kv = server.vault.mount("gpu/secrets", "team");
    server.vault.tokens.policies.set("team", { "gpu/secrets/data/*": ["create", "read", "update"] });
    byToken({ namespace: "team", policies: ["team"] });
    const store = open({ namespace: "team", mount: "gpu/secrets" });
    await store.check();
    await store.write("kv/maas-sites/1/api-token", { token: "x" });
    expect(kv.paths()).toEqual(["maas-sites/1/api-token"]);
    expect((await errorOf(open({ mount: "gpu/secrets" }).check())).isRefusal).toBe(true);
  });

  it("is believed by its certificate alone, whatever VAULT_SKIP_VERIFY says", async () => {
    const ca = await openCertificateAuthority(new MemorySecrets());
    const { certificatePem, privateKeyPem } = await ca.issueServer(["127.0.0.1"]);
    const tls = { key: privateKeyPem.reveal(), cert: certificatePem };
    const secure = await startVault({ tls, vault: server.vault });
    byToken();
    await open({ url: secure.url, ca: ca.caPem }).check();
    vi.stubEnv("VAULT_SKIP_VERIFY", "true");
    const stranger = await openCertificateAuthority(new MemorySecrets());
    for (const [url, trusted] of [
      [secure.url, null],
      [secure.url, stranger.caPem],
      [secure.url.replace("127.0.0.1", "localhost"), ca.caPem],
      [server.url.replace("http:", "https:"), ca.caPem],
    ] as const) {
      const error = await errorOf(open({ url, ca: trusted }).check());
      expect([error.code, error.isRefusal]).toEqual(["secret_store_untrusted", true]);
    }
    vi.unstubAllEnvs();
    await secure.close();
  });

  it("needs a CA file that holds one", async () => {
    const file = join(folder, "ca.pem");
    writeFileSync(file, "no certificate");
    const credentials = { kind: "token", tokenFile: secretFile } as const;
    const at = {
      kind: "vault",
      url: server.url,
      namespace: null,
      deadlineMs: 1_000,
      mount: "kv",
      credentials,
    } as const;
    for (const caFile of [file, join(folder, "none.pem")]) {
      const error = await errorOf(openSecrets({ ...at, caFile }, createLog("error")));
      expect([error.code, error.message]).toEqual([
        "secret_store_misconfigured",
        expect.stringMatching(/VAULT_CACERT/),
      ]);
    }
  });
});

describe("nextStep", () => {
  const lease = (seconds: number, renewable: boolean) => ({ seconds, renewable });
  it("is between two and three fifths of the lease, and never at once", () => {
    for (const random of [0, 0.5, 0.999]) {
      const step = nextStep(lease(100, true), lease(100, true), true, random);
      expect(step?.how).toBe("renew");
      expect(step?.afterMs).toBeGreaterThanOrEqual(40_000);
      expect(step?.afterMs).toBeLessThan(60_000);
      expect(nextStep(lease(1, true), lease(1, true), false, random)?.afterMs).toBe(1_000);
    }
  });
  it.each([
    ["never ends", lease(0, true), true, undefined],
    ["can be renewed", lease(100, true), false, "renew"],
    ["has met its longest life, by token", lease(40, true), false, "renew"],
    ["has met its longest life, by AppRole", lease(40, true), true, "log_in"],
    ["cannot be renewed, by token", lease(100, false), false, undefined],
    ["cannot be renewed, by AppRole", lease(100, false), true, "log_in"],
  ])("of a token that %s", (_name, now, canLogIn, how) => {
    expect(nextStep(now, lease(100, true), canLogIn, 0.5)?.how).toBe(how);
  });
});
