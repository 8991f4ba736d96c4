import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { inArray } from "../../../hub/db/orm.ts";
import { readOnboarding } from "../../../hub/db/queries/onboardings.ts";
import { workflows as workflowRows } from "../../../hub/db/schema/index.ts";
import { SiteClients } from "../../../hub/maas/site-clients.ts";
import { SECRET_PATHS, type SecretData } from "../../../hub/secrets/port.ts";
import { openVaultStore, type VaultStore } from "../../../hub/secrets/vault.ts";
import { siteClient } from "../../../hub/startup/site-services.ts";
import type { Watcher } from "../../../hub/watcher/watcher.ts";
import { applyVerb } from "../../../hub/workflows/engine/apply-verb.ts";
import type { Verb } from "../../../hub/workflows/engine/recovery.ts";
import type { WorkflowRunner } from "../../../hub/workflows/engine/runner.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import type { OnboardingDetail } from "../../../shared/api/onboardings.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { WorkflowStatus } from "../../../shared/workflow-status.ts";
import { SITE_BMC_PASSWORD, SITE_BMC_USER } from "../../fakes/maas/state/site.ts";
import { startVault, type VaultServer } from "../../fakes/vault/server.ts";
import { quietLog } from "../../support/log.ts";
import { type OnboardingRig, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { startAgents, startRigWatcher, startRunner } from "../../support/rig-hub.ts";
import { until } from "../../support/until.ts";
import { hubPolicy } from "../../support/vault-under-test.ts";

/** A workflow's stage reads secrets when it runs, and keeps no secret (lifecycle 3.2, 3.5). The tests change secrets in Vault while one hub runs. */
const folder = mkdtempSync(join(tmpdir(), "muster-rotation-"));
let rig: OnboardingRig;
let vault: VaultServer;
let store: VaultStore;
let watcher: Watcher;
let runner: WorkflowRunner;
let agents: ReturnType<typeof startAgents>;
let workflows: ReturnType<typeof workflowsOf>;
const alive = new Set<WorkflowId>();

beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 10, speed: 2000 });
  vault = await startVault();
  vault.vault.mount("kv");
  vault.vault.tokens.policies.set("muster", hubPolicy("kv"));
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, vault.vault.tokens.create({ policies: ["muster"] }));
  store = openVaultStore({
    address: { url: vault.url, namespace: null, ca: null, deadlineMs: 5_000 },
    mount: "kv",
    credentials: { kind: "token", tokenFile },
    log: quietLog,
  });
  for (const [path, data] of rig.secrets.entries) await store.write(path, data);
  const { db } = rig.services;
  const maas = siteClient(db, store, new SiteClients());
  workflows = workflowsOf({ ...rig.services, secrets: store, maas });
  watcher = startRigWatcher(rig, { clientFor: maas });
  runner = startRunner(rig, workflows);
  agents = startAgents(rig, alive);
});
afterAll(async () => {
  await agents?.close();
  await runner?.close();
  await watcher?.close();
  store?.close();
  await vault?.close();
  await rig?.close();
  rmSync(folder, { recursive: true, force: true });
});

const onboard = async (n: number): Promise<WorkflowId> => {
  const { id } = await rig.start(n);
  alive.add(id);
  return id;
};
const ended = (id: WorkflowId, ...statuses: WorkflowStatus[]): Promise<OnboardingDetail> =>
  until(`the onboarding to be ${statuses.join(" or ")}`, async () => {
    const row = await readOnboarding(rig.services.db, id);
    return row !== null && statuses.includes(row.status) ? row : undefined;
  });
const verb = (workflowId: WorkflowId, which: Verb) =>
  rig.services.inTx((tx) =>
    applyVerb(tx, workflows, { workflowId, verb: which, actor: "ann", role: "admin", reason: "test" }),
  );

async function writeIntoVault(path: string, data: SecretData): Promise<void> {
  const token = vault.vault.tokens.create({ policies: ["muster"] });
  const answer = await fetch(`${vault.url}/v1/kv/data/${path.replace(/^kv\//, "")}`, {
    method: "POST",
    headers: { "X-Vault-Token": token },
    body: JSON.stringify({ data }),
  });
  expect(answer.status).toBe(200);
}

it("the next stage uses a rotated MAAS token, and fails as maas_token_rejected while Vault has the old one", async () => {
  await ended(await onboard(1), "completed");
  const [token] = rig.maas.sim.region.state.users.flatMap((user) => user.tokens);
  if (token === undefined) throw new Error("MAAS has no token");
  const rotated = { consumer_key: "newConsumer", token_key: "newKey", token_secret: "newSecret" };
  Object.assign(token, rotated);
  const id = await onboard(2);
  const failed = await ended(id, "failed_retryable", "failed_manual_intervention");
  expect(failed).toMatchObject({ failure_class: "site_capability_missing", error_code: "maas_token_rejected" });
  await writeIntoVault(SECRET_PATHS.maasToken(rig.siteId), { token: Object.values(rotated).join(":") });
  await verb(id, "resume");
  await ended(id, "completed");
});

it("an onboarding waits for a sealed Vault, says so, and continues once Vault is unsealed", async () => {
  vault.vault.seal();
  const id = await onboard(3);
  const waiting = await until("the onboarding to wait for Vault", async () => {
    const row = await readOnboarding(rig.services.db, id);
    return row?.waiting_for === null ? undefined : row;
  });
  expect(waiting).toMatchObject({
    status: "running",
    current_attempt: 1,
    waiting_for: expect.stringMatching(
      /^the secret store to answer again \(secret_store_sealed\): unavailable since .* UTC$/,
    ),
    error_code: "secret_store_sealed",
    next_action: "Unseal Vault, then retry the stage.",
  });
  vault.vault.unseal();
  expect(await ended(id, "completed", "failed_retryable", "failed_manual_intervention")).toMatchObject({
    status: "completed",
  });
});

it("an onboarding fails at once when Vault's policy is taken away, and resumes when it is given back", async () => {
  const policy = vault.vault.tokens.policies.get("muster") ?? {};
  vault.vault.tokens.policies.set("muster", { "kv/data/other/*": ["read"] });
  const id = await onboard(4);
  const failed = await ended(id, "failed_retryable", "failed_manual_intervention");
  expect(failed).toMatchObject({ failure_class: "site_capability_missing", error_code: "secret_store_forbidden" });
  vault.vault.tokens.policies.set("muster", policy);
  await verb(id, "resume");
  await ended(id, "completed");
});

/** Adds a token to a user of the simulated MAAS. If the user does not exist, `addToken` creates the user as an administrator. */
function addToken(username: string, name: string): string {
  const { users } = rig.maas.sim.region.state;
  let user = users.find((one) => one.username === username);
  if (user === undefined) {
    user = { username, email: "", isSuperuser: true, tokens: [], sshKeys: [] };
    users.push(user);
  }
  user.tokens.push({ name, consumer_key: `${name}Consumer`, token_key: `${name}Key`, token_secret: `${name}Secret` });
  return `${name}Consumer:${name}Key:${name}Secret`;
}
function revokeAllBut(name: string): void {
  for (const user of rig.maas.sim.region.state.users) user.tokens = user.tokens.filter((token) => token.name === name);
}
const rowsOf = (ids: readonly WorkflowId[]) =>
  rig.services.db
    .select()
    .from(workflowRows)
    .where(inArray(workflowRows.id, [...ids]));
/** Waits until every stage that runs at present has ended, because a running stage may have read the old secrets. */
async function stagesAtWorkEnd(ids: readonly WorkflowId[]): Promise<void> {
  const before = new Map((await rowsOf(ids)).map((row) => [row.id, row.fence]));
  await until("the stages at work to end", async () =>
    (await rowsOf(ids)).every((row) => row.leaseOwner === null || row.fence !== before.get(row.id)) ? true : undefined,
  );
}
const machineOf = (hostname: string) =>
  rig.maas.sim.region.state.machines.find((machine) => machine.hostname === hostname);
const callsOf = (hostname: string) => rig.maas.sim.region.state.counters[machineOf(hostname)?.systemId ?? ""];

it("running onboardings complete without a repeated step while all credentials rotate, even to another user's token", async () => {
  const early = await Promise.all([5, 6, 7].map(onboard));
  const rotateToken = async (username: string, name: string, ids: readonly WorkflowId[]) => {
    await writeIntoVault(SECRET_PATHS.maasToken(rig.siteId), { token: addToken(username, name) });
    await stagesAtWorkEnd(ids);
    revokeAllBut(name);
  };
  await rotateToken("admin", "second", early);
  // MAAS stored the hosts' BMC login at the commissioning, and the hub does not change the stored login.
  await until("all to be commissioned", async () =>
    [5, 6, 7].every((n) => callsOf(`host-${n}`)?.commission === 1) ? true : undefined,
  );
  // The BMCs of hosts whose onboarding has not begun get the new login before Vault has it. The BMCs of hosts whose onboarding has begun keep the old
  // login.
  for (const box of rig.maas.sim.region.state.hardware.slice(7)) Object.assign(box, { bmcPass: "rotated-bmc-pass" });
  await writeIntoVault(SECRET_PATHS.defaultPower(rig.siteId), { user: SITE_BMC_USER, pass: "rotated-bmc-pass" });
  await writeIntoVault(SECRET_PATHS.deployPassword(rig.siteId), { password: "rotated-deploy-pass" });
  const ids = [...early, ...(await Promise.all([8, 9, 10].map(onboard)))];
  await rotateToken("admin", "third", ids);
  await rotateToken("other-admin", "fourth", ids);
  for (const id of ids) {
    const over = await ended(id, "completed", "failed_retryable", "failed_manual_intervention");
    expect({ id, status: over.status, code: over.error_code }).toEqual({ id, status: "completed", code: null });
  }
  for (const n of [5, 6, 7, 8, 9, 10]) {
    expect(callsOf(`host-${n}`)).toMatchObject({ commission: 1, deploy: 1, release: 0 });
    const login = n < 8 ? SITE_BMC_PASSWORD : "rotated-bmc-pass";
    expect(machineOf(`host-${n}`)?.powerParameters["power_pass"]).toBe(login);
  }
});
