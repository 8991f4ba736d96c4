import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect, promisify } from "node:util";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLog } from "../../shared/log.ts";
import { VaultFault } from "../../test/fakes/vault/answer.ts";
import { startVault, type VaultServer } from "../../test/fakes/vault/server.ts";
import { MemorySecrets } from "../../test/support/memory-secrets.ts";
import { hubPolicy } from "../../test/support/vault-under-test.ts";
import { openCertificateAuthority } from "../gateway/certificate-authority.ts";
import { openSecrets } from "./open.ts";
import { SecretError } from "./port.ts";
import { openVaultStore, type VaultOptions, type VaultStore } from "./vault.ts";

const folder = mkdtempSync(join(tmpdir(), "muster-vault-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const POLICY = hubPolicy("kv");

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
    clock: server.vault.clock,
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
const errorOf = (promise: Promise<unknown>): Promise<SecretError> =>
  promise.then(
    () => Promise.reject(new Error("nothing was thrown")),
    (error: unknown) => (error instanceof SecretError ? error : Promise.reject(error)),
  );

describe("a Vault that refuses or fails", () => {
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

  it("gives up at its deadline, and reports an address where nothing listens", async () => {
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

  it("reports at the start what is wrong with the mount", async () => {
    byToken();
    server.vault.mountVersion1("old");
    server.vault.tokens.policies.set("muster", { ...POLICY, "old/*": ["read"], "gone/*": ["read"] });
    await open().check();
    for (const [mount, says] of [
      ["old", /no KV version 2/],
      ["kv/below", /no KV version 2 mounted at kv\/below/],
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

  it("detects a mount of version 1, which would accept a write and keep no version of it", async () => {
    byToken();
    server.vault.mountVersion1("old");
    server.vault.tokens.policies.set("muster", { "old/*": ["create", "read", "update"] });
    const store = open({ mount: "old" });
    for (const call of [
      () => store.write("kv/a", { v: "1" }),
      () => store.read("kv/a"),
      () => store.write("kv/a", { v: "1" }, "nothing"),
    ])
      expect((await errorOf(call())).code).toBe("secret_store_misconfigured");
  });

  it("does not report a secret as missing if only a proxy answers 404", async () => {
    byToken();
    const proxy = createServer((request, response) =>
      request.url?.endsWith("/lookup-self") === true
        ? response.end(JSON.stringify({ data: { ttl: 0 } }))
        : response.writeHead(404).end("<p>Not found</p>"),
    );
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const store = open({ url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
    for (const call of [store.read("kv/a"), store.write("kv/a", { v: "1" }), store.remove("kv/a"), store.check()])
      expect((await errorOf(call)).code).toBe("secret_store_misconfigured");
    proxy.close();
  });

  it("reports that a request is too large", async () => {
    byToken();
    // On a busy machine, the test's call to Vault needs a deadline of two minutes.
    const patient = open({ deadlineMs: 120_000 });
    const error = await errorOf(patient.write("kv/a", { v: "x".repeat(33 * 1024 * 1024) }));
    expect([error.code, error.message]).toEqual(["secret_store_misconfigured", expect.stringMatching(/of this size/)]);
    expect(error.message.length).toBeLessThan(300);
  });

  it("recognizes that an answer without JSON is not from Vault", async () => {
    byToken();
    const page = createServer((_request, response) => response.end("<p>Welcome</p>"));
    await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve));
    const error = await errorOf(open({ url: `http://127.0.0.1:${(page.address() as AddressInfo).port}` }).read("kv/a"));
    page.close();
    expect([error.code, error.message]).toEqual(["secret_store_unavailable", expect.stringMatching(/not JSON/)]);
  });

  it("refuses a secret with a field that is not text, and does not quote it", async () => {
    const token = byToken();
    const url = `${server.url}/v1/kv/data/a`;
    const body = JSON.stringify({ data: { pin: 31337 } });
    await fetch(url, { method: "POST", headers: { "X-Vault-Token": token }, body });
    const error = await errorOf(open().read("kv/a"));
    expect(error.code).toBe("secret_corrupt");
    expect(inspect(error)).not.toContain("31337");
  });
});

describe("a secret that is read", () => {
  it("is not printed by the library, nor is the token, although DEBUG asks for that", async () => {
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

describe("the address of Vault", () => {
  it("takes nothing from the environment that the hub's settings do not contain", async () => {
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

  it("may include a namespace, and a mount path with several parts", async () => {
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

  it("is trusted only by its certificate, whatever VAULT_SKIP_VERIFY says", async () => {
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

  it("needs a CA file with a certificate", async () => {
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
