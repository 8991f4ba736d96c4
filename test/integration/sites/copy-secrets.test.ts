import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { namedSecrets } from "../../../hub/copy-secrets/named-secrets.ts";
import * as schema from "../../../hub/db/schema/index.ts";
import { openCertificateAuthority } from "../../../hub/gateway/certificate-authority.ts";
import { openTaskSigner } from "../../../hub/gateway/task-signer.ts";
import { SECRET_PATHS, type SecretStore } from "../../../hub/secrets/port.ts";
import { openSealedFileStore } from "../../../hub/secrets/sealed-file.ts";
import { ensureSameStore } from "../../../hub/startup/same-store.ts";
import { startVault, type VaultServer } from "../../fakes/vault/server.ts";
import type { Child } from "../../support/child.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { freePort } from "../../support/free-port.ts";
import { type HubCommand, runHubCommand } from "../../support/hub-command.ts";
import { freeHubPorts, type HubPorts, startHubProcess } from "../../support/hub-process.ts";
import { insertSite } from "../../support/site.ts";
import { until } from "../../support/until.ts";
import { hubPolicy } from "../../support/vault-under-test.ts";

/** Tests the hub's command `copy-secrets`, which copies secrets that hubs have kept in sealed files. */
const OVERRIDES = 12;
const CANARY = "canary-of-a-secret";
let folder: string;
let test: TestDatabase;
let server: VaultServer;
let sealed: SecretStore;
let site: string;
let children: ChildProcess[];
let hubs: Child[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "muster-copy-secrets-"));
  [children, hubs] = [[], []];
  test = await createTestDatabase();
  server = await startVault();
  server.vault.mount("kv");
  server.vault.tokens.policies.set("muster", hubPolicy("kv"));
  writeFileSync(join(folder, "token"), server.vault.tokens.create({ policies: ["muster"] }));
  sealed = await openSealedFileStore({ directory: join(folder, "secrets") });
  await seed();
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  await Promise.all(hubs.map((hub) => hub.stop()));
  await server.close();
  await test.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function seed(): Promise<void> {
  const { db } = test.database;
  await ensureSameStore(db, sealed);
  await openCertificateAuthority(sealed);
  await openTaskSigner(sealed);
  const id = await insertSite(db);
  site = id;
  const paths = {
    apiTokenVaultPath: SECRET_PATHS.maasToken(id),
    defaultPowerCredsVaultPath: SECRET_PATHS.defaultPower(id),
    deployPasswordVaultPath: SECRET_PATHS.deployPassword(id),
  };
  await db.update(schema.maasSites).set(paths);
  for (const path of Object.values(paths)) await sealed.write(path, { value: `${CANARY} of ${path}` });
  for (let n = 0; n < OVERRIDES; n += 1) {
    const override = randomUUID();
    const vaultPath = SECRET_PATHS.powerOverride(id, override);
    const about = { selectorType: "hostname", selectorValue: `h${n}`, vaultPath } as const;
    await db.insert(schema.maasPowerCredentialOverrides).values({ id: override, siteId: id, ...about });
    await sealed.write(vaultPath, { user: "root", pass: `${CANARY} ${n}` });
  }
  const webhook = randomUUID();
  await db.insert(schema.webhooks).values({ id: webhook, url: "https://r.example/", types: ["*"], fannedOutTo: 0n });
  await sealed.write(SECRET_PATHS.webhookSecret(webhook), { secret: CANARY });
  const { rows } = await test.database.pool.query(
    `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
      select gen_random_uuid(), 'n' || n, $1, 's', 8, 'r', 'enrolling', 'maas' from generate_series(1, 2) n returning id`,
    [id],
  );
  await sealed.write(SECRET_PATHS.userData(rows[0].id), { user_data: CANARY });
}
/** The number of copied secrets: overrides, CA, order key, MAAS token, BMC login, deploy password, webhook secret, and one host's user data. */
const ALL = 7 + OVERRIDES;

const environment = (): Record<string, string> => ({
  DATABASE_URL: test.url,
  MUSTER_STATE_DIR: folder,
  VAULT_ADDR: server.url,
  VAULT_TOKEN_FILE: join(folder, "token"),
});

function start(words: readonly string[], env: Record<string, string> = {}): HubCommand {
  const command = runHubCommand(words, { ...environment(), ...env });
  children.push(command.process);
  return command;
}

async function copy(to: "vault" | "sealed_file", env: Record<string, string> = {}) {
  const { status, told } = await start(["copy-secrets", "--to", to], env).ended;
  for (const secret of [CANARY, "PRIVATE KEY", "hvs.", new URL(test.url).password])
    if (secret !== "") expect(told).not.toContain(secret);
  return { status, told, lines: told.trimEnd().split("\n") };
}

function startHub(secrets: "vault" | "sealed_file", ports: HubPorts): Child {
  const hub = startHubProcess({
    databaseUrl: test.url,
    stateDir: folder,
    ports,
    env: { ...environment(), MUSTER_SECRETS: secrets },
    logFile: join(folder, "hub.log"),
  });
  hubs.push(hub);
  return hub;
}

function inVault(): Record<string, unknown> {
  const kv = server.vault.mountAt("kv");
  return Object.fromEntries(kv.paths().map((path) => [`kv/${path}`, kv.newest(path)]));
}
async function inSealed(): Promise<Record<string, unknown>> {
  const named = await namedSecrets(test.database.db);
  const paths = [...named.map(({ path }) => path), SECRET_PATHS.storeId];
  const entries = await Promise.all(
    paths.map(async (path) => [path, await sealed.read(path).catch(() => null)] as const),
  );
  return Object.fromEntries(entries.filter(([, data]) => data !== null));
}

/** Kills the command `copy-secrets` during its nth call to Vault that begins with `calls`. */
async function killWithin(to: "vault" | "sealed_file", calls: string, nth: number): Promise<void> {
  const held = holdAfter(calls, nth);
  const killed = start(["copy-secrets", "--to", to]);
  await until(`call ${nth} of ${calls}`, held);
  killed.process.kill("SIGKILL");
  await killed.ended;
  server.arriving = async () => undefined;
}

/**
 * Blocks the command `copy-secrets` at its nth call to Vault that begins with `calls`. `holdAfter` returns a function that tells whether the command
 * `copy-secrets` is already blocked.
 */
function holdAfter(calls: string, count: number): () => true | undefined {
  let came = 0;
  server.arriving = async (call) => {
    if (call.startsWith(calls)) came += 1;
    if (came === count) await new Promise(() => undefined);
  };
  return () => (came === count ? true : undefined);
}

/** Each test of `copy-secrets` starts up to six processes one after the other, and needs a long time-out. */
describe("copy-secrets", { timeout: 300_000 }, () => {
  it("makes a hub continue with the other store, and refuses to run beside a hub", async () => {
    const ports = await freeHubPorts();
    const before = startHub("sealed_file", ports);
    await before.ready;
    const refused = await copy("vault");
    expect([refused.status, refused.told]).toEqual([1, expect.stringMatching(/A hub runs on this database.*Stop/)]);
    expect(inVault()).toEqual({});
    await before.stop();

    const files = readdirSync(join(folder, "secrets"));
    const first = await copy("vault");
    expect([first.status, first.told]).toEqual([0, expect.stringContaining(`${ALL} copied, 0 there already, 0 mi`)]);
    expect(first.lines.filter((line) => line.startsWith("copied "))).toHaveLength(ALL);
    expect(first.told).toMatch(/set MUSTER_SECRETS=vault/);
    expect(inVault()).toEqual(await inSealed());
    expect(readdirSync(join(folder, "secrets"))).toEqual(files);

    rmSync(join(folder, "secrets"), { recursive: true });
    const after = startHub("vault", ports);
    await after.ready;
    const ready = () => fetch(`http://127.0.0.1:${ports.http}/readyz`).then((answer) => answer.text());
    await until("the hub uses it", async () => (/"secret_store":"ok"/.test(await ready()) ? true : undefined));
    await after.stop();
  });

  it("leaves a Vault that no hub starts with when it is killed, and continues where it stopped", async () => {
    await killWithin("vault", "POST kv/data/", 5);
    expect(Object.keys(inVault())).toHaveLength(4);
    expect(await startHub("vault", await freeHubPorts()).gone).toMatchObject({ code: 78 });
    const { status, told } = await copy("vault");
    expect([status, told]).toEqual([0, expect.stringContaining(`${ALL - 4} copied, 4 there already`)]);
    expect(inVault()).toEqual(await inSealed());
  });

  it("copies the secrets back into files, even after a kill", async () => {
    const wanted = await inSealed();
    for (const [path, data] of Object.entries(wanted)) server.vault.mountAt("kv").write(path.slice(3), { data });
    rmSync(join(folder, "secrets"), { recursive: true });
    await killWithin("sealed_file", "GET kv/data/", 8);
    const there = readdirSync(join(folder, "secrets")).filter((name) => name.endsWith(".sealed")).length;
    expect(there).toBeGreaterThan(2);
    const { status, told } = await copy("sealed_file");
    expect([status, told]).toEqual([0, expect.stringContaining(`${ALL - there} copied, ${there} there already`)]);
    sealed = await openSealedFileStore({ directory: join(folder, "secrets") });
    expect(await inSealed()).toEqual(wanted);
  });

  it("stops when Vault is sealed or forbids a call, at the start or later, and says why", async () => {
    server.vault.seal();
    const sealedAtOnce = await copy("vault");
    expect([sealedAtOnce.status, sealedAtOnce.told]).toEqual([1, expect.stringMatching(/Unseal it/)]);
    server.vault.unseal();
    const once = (count: number, act: () => void) => async () => {
      if (Object.keys(inVault()).length === count) act();
    };
    server.arriving = once(3, () => server.vault.seal());
    const inItsMidst = await copy("vault");
    expect(inItsMidst.status).toBe(1);
    expect(inItsMidst.told).toMatch(/^2 copied, .*The copy stopped.*run this command again.*Unseal it/ms);
    server.vault.unseal();
    server.arriving = once(5, () => server.vault.tokens.policies.set("muster", { "kv/data/*": ["read"] }));
    const forbidden = await copy("vault");
    expect(forbidden.status).toBe(78);
    expect(forbidden.told).toMatch(/^2 copied, 3 there already, .*The copy stopped.*Give its policy these rights/ms);
    server.vault.tokens.policies.set("muster", hubPolicy("kv"));
    server.arriving = async () => undefined;
    expect((await copy("vault")).status).toBe(0);
  });

  it("reports different, missing and unreadable secrets, overwrites nothing, and succeeds once they are mended", async () => {
    const [token, power] = [SECRET_PATHS.maasToken(site), SECRET_PATHS.defaultPower(site)];
    const anothers = { value: { not: `a text, ${CANARY}` } };
    server.vault.mountAt("kv").write(token.slice(3), { data: anothers });
    const value = await sealed.read(power);
    await sealed.remove(power);
    const first = await copy("vault");
    expect(first.status).toBe(1);
    expect(first.lines).toEqual(
      expect.arrayContaining([
        expect.stringMatching(`^different +${token}$`),
        expect.stringMatching(`^missing +${power}$`),
        expect.stringContaining(`${ALL - 2} copied, 0 there already, 1 missing, 0 unreadable, 1 different`),
      ]),
    );
    expect(first.told).toMatch(/Not finished.*vault kv metadata delete/s);
    expect(inVault()[token]).toEqual(anothers);
    expect(inVault()).not.toHaveProperty([SECRET_PATHS.storeId]);
    server.vault.mountAt("kv").deleteMetadata(token.slice(3));
    await sealed.write(power, value);
    expect((await copy("vault")).status).toBe(0);
    // A second run of `copy-secrets` must find the secret that a hub wrote into the old secret store after the first run.
    await sealed.write(power, { value: `${CANARY} since` });
    const since = await copy("vault");
    expect([since.status, since.told]).toEqual([1, expect.stringMatching(`different +${power}`)]);
  });

  it("copies the secrets that the rows name, and tolerates missing ones that no row needs", async () => {
    const { db } = test.database;
    const sites = await db.select().from(schema.maasSites);
    await db.update(schema.maasSites).set({ apiTokenVaultPath: null });
    await db.update(schema.maasPowerCredentialOverrides).set({ status: "disabled" });
    const named = await namedSecrets(db);
    expect(sites.map(({ apiTokenVaultPath }) => apiTokenVaultPath)).toEqual([SECRET_PATHS.maasToken(site)]);
    expect(named).not.toContainEqual(expect.objectContaining({ path: SECRET_PATHS.maasToken(site) }));
    expect(named).toContainEqual({ path: SECRET_PATHS.deployPassword(site), needed: true });
    const maybe = named.filter(({ needed }) => !needed).map(({ path }) => path);
    expect(maybe.filter((path) => path.includes("/power/overrides/"))).toHaveLength(OVERRIDES);
    expect(maybe.filter((path) => path.includes("/user-data"))).toHaveLength(2);
    expect(maybe).toHaveLength(OVERRIDES + 2);
  });

  it("refuses a store of another installation on either side, and a database that no hub has used", async () => {
    server.vault.mountAt("kv").write(SECRET_PATHS.storeId.slice(3), { data: { id: randomUUID() } });
    const others = await copy("vault");
    expect([others.status, others.told]).toEqual([78, expect.stringMatching(/another installation/)]);
    expect(Object.keys(inVault())).toHaveLength(1);
    const back = await copy("sealed_file");
    expect([back.status, back.told]).toEqual([78, expect.stringMatching(/does not belong to the database/)]);
    await test.database.db.delete(schema.installation);
    const unused = await copy("vault");
    expect([unused.status, unused.told]).toEqual([1, expect.stringMatching(/No hub has started on this database/)]);
  });

  it("refuses wrong settings, an unreachable database, and unknown arguments", async () => {
    const noDatabase = await copy("vault", { DATABASE_URL: `postgres://u:${CANARY}@127.0.0.1:${await freePort()}/d` });
    expect([noDatabase.status, noDatabase.told]).toEqual([
      1,
      expect.stringMatching(/ECONNREFUSED.*Check DATABASE_URL/),
    ]);
    const noVault = await copy("vault", { VAULT_ADDR: "" });
    expect([noVault.status, noVault.told]).toEqual([78, expect.stringMatching(/needs VAULT_ADDR/)]);
    const { status, told } = await start(["copy-secrets", "--to", "x"]).ended;
    expect([status, told]).toEqual([2, expect.stringContaining("copy-secrets --to")]);
    expect((await start(["--help"]).ended).status).toBe(0);
  });
});
