import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startVault, type VaultServer } from "../../fakes/vault/server.ts";
import type { Child } from "../../support/child.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { freePort } from "../../support/free-port.ts";
import { HubApi } from "../../support/hub-api.ts";
import { freeHubPorts, type HubPorts, startHubProcess } from "../../support/hub-process.ts";
import { until } from "../../support/until.ts";
import { hubPolicy } from "../../support/vault-under-test.ts";

/**
 * Tests a hub process that keeps its secrets in Vault. While Vault is sealed, the hub runs but cannot read or write secrets. The hub does not start
 * if a setting of its connection to Vault is wrong.
 */
const POLICY = hubPolicy("kv");
const folder = mkdtempSync(join(tmpdir(), "muster-vault-hub-"));
const secretIdFile = join(folder, "secret-id");
let database: TestDatabase;
let server: VaultServer;
let roleId: string;
let newSecretId: () => string;
let ports: HubPorts;
const started: Child[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  server = await startVault();
  server.vault.mount("kv");
  server.vault.tokens.policies.set("muster", POLICY);
  const role = server.vault.tokens.addRole({ policies: ["muster"] });
  ({ roleId, newSecretId } = role);
  writeFileSync(secretIdFile, newSecretId(), { mode: 0o600 });
  ports = await freeHubPorts();
});
afterAll(async () => {
  await Promise.all(started.map((hub) => hub.stop()));
  await server?.close();
  await database?.drop();
  rmSync(folder, { recursive: true, force: true });
});

function startHub(env: Record<string, string> = {}, logFile = join(folder, "hub.log")): Child {
  const hub = startHubProcess({
    databaseUrl: database.url,
    stateDir: join(folder, "hub"),
    ports,
    env: {
      MUSTER_DATABASE_POOL_SIZE: "4",
      MUSTER_SECRETS: "vault",
      VAULT_ADDR: server.url,
      VAULT_ROLE_ID: roleId,
      VAULT_SECRET_ID_FILE: secretIdFile,
      ...env,
    },
    logFile,
  });
  started.push(hub);
  return hub;
}
const url = () => `http://127.0.0.1:${ports.http}`;
const readiness = async () => (await fetch(`${url()}/readyz`)).json() as Promise<{ secret_store: string }>;
/** True if the hub's agent listener accepts connections, whether or not the TLS handshake succeeds. */
const agentsAreHeard = () =>
  fetch(`https://127.0.0.1:${ports.agent}/`).then(
    () => true,
    (error: unknown) => !String((error as Error).cause).includes("ECONNREFUSED"),
  );

describe("a hub with its secrets in Vault", () => {
  it("starts although Vault is sealed, says so, and continues by itself once Vault is unsealed", async () => {
    server.vault.seal();
    const hub = startHub();
    await hub.ready;
    expect(await readiness()).toEqual({ status: "ok", secret_store: "secret_store_sealed" });
    const api = new HubApi(url(), readFileSync(join(folder, "hub", "admin-token"), "utf8").trim());
    const status = async () => api.call(z.looseObject({ secret_store: z.unknown() }), "GET", "/api/v1/admin/status");
    expect(await status()).toMatchObject({ secret_store: { detail: expect.stringMatching(/Unseal it/) } });
    expect(await agentsAreHeard()).toBe(false);
    server.vault.unseal();
    await until("hosts are heard", async () => ((await agentsAreHeard()) ? true : undefined));
    await until("the hub is told of it", async () => ((await readiness()).secret_store === "ok" ? true : undefined));
    expect(await status()).toMatchObject({ secret_store: { code: "ok", detail: null } });
    await hub.stop();
    expect(readFileSync(join(folder, "hub.log"), "utf8")).not.toMatch(/hvs[.]|PRIVATE KEY/);
  });

  it("starts although Vault is unreachable, if it has used the store before", async () => {
    await startAndStop();
    const hub = startHub({ VAULT_ADDR: `http://127.0.0.1:${await freePort()}` });
    await hub.ready;
    expect(await readiness()).toEqual({ status: "ok", secret_store: "secret_store_unavailable" });
    await hub.stop();
  });

  it.each([
    ["a secret ID that Vault refuses", () => ({ VAULT_SECRET_ID_FILE: fileWith("nothing") }), /refuses the login/],
    ["a mount that is not there", () => ({ MUSTER_VAULT_MOUNT: "other" }), /nothing mounted at other/],
    ["a file that is not there", () => ({ VAULT_SECRET_ID_FILE: join(folder, "none") }), /VAULT_SECRET_ID_FILE/],
    ["an address with a path", () => ({ VAULT_ADDR: `${server.url}/v1` }), /VAULT_ADDR/],
    ["no login", () => ({ VAULT_ROLE_ID: "", VAULT_SECRET_ID_FILE: "" }), /VAULT_TOKEN_FILE/],
    ["the store of another installation", () => ({ MUSTER_SECRETS: "sealed_file" }), /belongs to the database/],
  ])("refuses to start with %s", async (_name, wrong, says) => {
    await startAndStop();
    const logFile = join(folder, "refused.log");
    rmSync(logFile, { force: true });
    expect(await startHub(wrong(), logFile).gone).toMatchObject({ code: 78 });
    expect(readFileSync(logFile, "utf8")).toMatch(says);
  });

  it("creates one CA together with another hub that starts at the same time", async () => {
    const fresh = await createTestDatabase();
    const kv = server.vault.mount("fresh");
    server.vault.tokens.policies.set("muster", { ...POLICY, ...hubPolicy("fresh") });
    const env = async (name: string) => ({
      DATABASE_URL: fresh.url,
      MUSTER_VAULT_MOUNT: "fresh",
      MUSTER_STATE_DIR: join(folder, name),
      MUSTER_SHARED_DIR: join(folder, "shared"),
      MUSTER_HTTP_PORT: String(await freePort()),
      MUSTER_AGENT_PORT: String(await freePort()),
    });
    const hubs = [startHub(await env("one")), startHub(await env("two"))];
    await Promise.all(hubs.map((hub) => hub.ready));
    for (const made of ["certificate-authority", "task-signing-key", "store-id"])
      expect(kv.read(`muster/${made}`, new URLSearchParams()).body).toMatchObject({
        data: { metadata: { version: 1 } },
      });
    await Promise.all(hubs.map((hub) => hub.stop()));
    await fresh.drop();
  });
});

/** Starts a hub once with correct settings, so that the hub's database records which secret store the hub uses. */
async function startAndStop(): Promise<void> {
  if ((await database.database.pool.query("select 1 from installation").catch(() => ({ rowCount: 0 }))).rowCount === 1)
    return;
  const hub = startHub();
  await hub.ready;
  await hub.stop();
}

function fileWith(text: string): string {
  const file = join(folder, "wrong");
  writeFileSync(file, text);
  return file;
}
