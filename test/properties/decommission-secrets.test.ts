import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { otherHostsOf, removerOfLogin } from "../../hub/db/queries/decommission-secrets.ts";
import {
  changePowerOverride,
  disablePowerOverride,
  insertPowerOverride,
} from "../../hub/db/queries/power-overrides.ts";
import { listStageEvents } from "../../hub/db/queries/workflow-events.ts";
import { auditLogs, maasPowerCredentialOverrides, nodeDecommissions } from "../../hub/db/schema/index.ts";
import { SECRET_PATHS } from "../../hub/secrets/port.ts";
import { startOnboarding } from "../../hub/workflows/onboarding/start-onboarding.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { playDecommissionedAgent } from "../support/decommission-world.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../support/onboarding-rig.ts";
import { type DeployedHost, hostInService, retiredHost, startFull, startRelease } from "../support/release-world.ts";
import { Driver, plainly } from "./drive.ts";

/** A full decommission removes some secrets of its node and keeps others (architecture 14.8). */
let rig: OnboardingRig;
let driver: Driver;
let boxes = 0;
let host: DeployedHost;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 36 });
  driver = new Driver(rig.test, workflowsOf(rig.services), (id) => playDecommissionedAgent(rig, id));
});
afterAll(() => rig?.close());
const anotherHost = (): Promise<DeployedHost> => {
  boxes += 1;
  return hostInService(rig, boxes, `kept-${boxes}`);
};
beforeEach(async () => {
  host = await anotherHost();
});

const db = () => rig.services.db;
interface Login {
  readonly id: string;
  readonly path: string;
}
/** Writes a BMC login as the API does: the secret first, then the database row. */
async function login(selectorType: "hostname" | "ipmi_ip" | "pxe_mac", selectorValue: string): Promise<Login> {
  const id = randomUUID();
  const path = SECRET_PATHS.powerOverride(rig.siteId, id);
  await rig.secrets.write(path, { user: "u", pass: "p" });
  const row = { id, siteId: rig.siteId, selectorType, selectorValue, vaultPath: path };
  await rig.services.inTx((tx) => insertPowerOverride(tx, row));
  return { id, path };
}
/** Replaces the secret of a BMC login and enables the login, as the API does. */
async function write({ id, path }: Login): Promise<void> {
  await rig.secrets.write(path, { user: "u", pass: "another" });
  await rig.services.inTx((tx) => changePowerOverride(tx, rig.siteId, id, { status: "active" }));
}
const until = (id: WorkflowId, stage: string) => driver.drive(id, (row) => (row.stage === stage ? null : plainly));
const drive = async (id: WorkflowId) => (await driver.drive(id)).status;
const statusOf = async ({ id }: Login) =>
  (await db().select().from(maasPowerCredentialOverrides).where(eq(maasPowerCredentialOverrides.id, id)))[0]?.status;
/** Returns whether the secret store has the BMC login, and the status of the login's row. */
const standing = async (one: Login) => [rig.secrets.entries.has(one.path), await statusOf(one)];
const REMOVED = [false, "disabled"];
const STAYS = [true, "active"];
const secretsOf = async (id: WorkflowId) =>
  (await db().select().from(nodeDecommissions).where(eq(nodeDecommissions.decommissionId, id)))[0]?.secrets ?? [];
const outcomes = async (id: WorkflowId) => (await secretsOf(id)).map(({ outcome }) => outcome);
const reportOf = async (id: WorkflowId): Promise<string> =>
  (await listStageEvents(db(), id)).findLast((event) => event.stage === "cleanup_secrets")?.message ?? "";

describe("a login of an address", () => {
  it("that two hosts have swapped stays for the other host, and the result names it with the reason", async () => {
    const other = await anotherHost();
    const address = host.box.bmcAddress;
    const [mine, theirs] = [await login("ipmi_ip", address), await login("ipmi_ip", other.box.bmcAddress)];
    [host.box.bmcAddress, other.box.bmcAddress] = [other.box.bmcAddress, address];
    for (const { machine, box } of [host, other]) machine.powerParameters["power_address"] = box.bmcAddress;
    const { id } = await startFull(rig, host);
    expect(await drive(id), await driver.story(id)).toBe("completed");
    expect([await standing(mine), await standing(theirs)]).toEqual([STAYS, STAYS]);
    expect(await reportOf(id)).toContain(
      `Not removed: the BMC login ${mine.id} (ipmi_ip ${address}), because the BMC of machine`,
    );
    expect(await reportOf(id)).toContain(`the BMC login ${theirs.id}`);
  });

  it("that another node has in Muster's records stays", async () => {
    const other = await anotherHost();
    const shared = await login("ipmi_ip", host.box.bmcAddress);
    await db().execute(
      sql`update node_maas_state set ipmi_ip = ${host.box.bmcAddress} where node_id = ${other.nodeId}`,
    );
    const { id } = await startFull(rig, host);
    expect(await drive(id), await driver.story(id)).toBe("completed");
    expect(await standing(shared)).toEqual(STAYS);
    expect(await reportOf(id)).toContain(`it may be the login of node ${other.hostname} (${other.nodeId})`);
  });
});

describe("neither releases nor powers off while MAAS has the BMC of another node's host at the machine", () => {
  const failsFor = async (id: WorkflowId, stage: string, told: string, counted = { release: 0 }) => {
    const failed = await driver.drive(id);
    expect(failed, await driver.story(id)).toMatchObject({ stage, failureCode: "node_state_conflict" });
    expect(failed.failureMessage).toContain(told);
    expect(rig.maas.sim.region.state.counters[host.machine.systemId]).toMatchObject(counted);
    await driver.verb(id, "rerun");
  };

  it("of a full decommission", async () => {
    const other = await anotherHost();
    const { id } = await startFull(rig, host);
    await until(id, "choose_secrets");
    const own = host.box.bmcAddress;
    for (const stage of ["choose_secrets", "release_maas_node"]) {
      host.machine.powerParameters["power_address"] = other.box.bmcAddress;
      await failsFor(id, stage, `of node ${other.hostname} (${other.nodeId})`);
      host.machine.powerParameters["power_address"] = own;
      await until(id, "release_maas_node");
    }
    expect(await drive(id), await driver.story(id)).toBe("completed");
  });

  // The BMC of the other host reports `off`, which must not count as the power state of the released machine.
  it.each(["on", "off"] as const)("of a release, which powers off no other host that is %s", async (power) => {
    const other = host;
    boxes += 1;
    host = await retiredHost(rig, boxes);
    const { id } = await startRelease(rig, host);
    await until(id, "power_off_maas_node");
    host.box.power = "on";
    other.box.power = power;
    host.machine.powerParameters["power_address"] = other.box.bmcAddress;
    await failsFor(id, "power_off_maas_node", `of node ${other.hostname}`, { release: 1 });
    expect(other.box.power).toBe(power);
    host.machine.powerParameters["power_address"] = host.box.bmcAddress;
    expect(await drive(id), await driver.story(id)).toBe("completed");
    expect([host.box.power, other.box.power]).toEqual(["off", power]);
  });

  it.each([
    ["has no machine in MAAS any more", "drain and remove node"],
    ["has no BMC address in MAAS", "Give both machines their own power parameters"],
  ])("of a release, also if the other node %s", async (what, told) => {
    const other = host;
    boxes += 1;
    host = await retiredHost(rig, boxes);
    const { state } = rig.maas.sim.region;
    const { id } = await startRelease(rig, host);
    host.machine.powerParameters["power_address"] = other.box.bmcAddress;
    if (what.startsWith("has no machine")) state.machines = state.machines.filter((one) => one !== other.machine);
    else other.machine.powerParameters["power_address"] = "";
    await failsFor(id, "release_maas_node", told);
    host.machine.powerParameters["power_address"] = host.box.bmcAddress;
    expect(await drive(id), await driver.story(id)).toBe("completed");
    expect(state.counters[host.machine.systemId]).toMatchObject({ release: 1 });
  });
});

it("counts a login as removed that an operator deleted meanwhile", async () => {
  const one = await login("hostname", host.hostname);
  const { id } = await startFull(rig, host);
  await until(id, "release_maas_node");
  await disablePowerOverride(db(), one.id);
  await rig.secrets.remove(one.path);
  expect(await drive(id), await driver.story(id)).toBe("completed");
  expect(await outcomes(id)).toEqual(["removed"]);
});

it("keeps a login that an operator disabled meanwhile, whose secret is still in the store", async () => {
  const one = await login("hostname", host.hostname);
  const { id } = await startFull(rig, host);
  await until(id, "release_maas_node");
  await disablePowerOverride(db(), one.id);
  expect(await drive(id), await driver.story(id)).toBe("completed");
  expect(await standing(one)).toEqual([true, "disabled"]);
  expect(await outcomes(id)).toEqual(["kept"]);
});

it("keeps a login that an onboarding has come to need since the choice, until the onboarding is over", async () => {
  const selectors = ["hostname", "ipmi_ip", "pxe_mac"] as const;
  const logins = [await login("hostname", host.hostname), await login("ipmi_ip", host.box.bmcAddress)];
  const { id } = await startFull(rig, host);
  await until(id, "cleanup_secrets");
  const about = { profile_id: rig.profileId, sku_id: SKU, hostname: "newcomer", ipmi_ip: "10.99.0.1" };
  const request = { site_id: rig.siteId, ...about, pxe_mac: "02:00:00:00:99:01" };
  const started = await rig.services.inTx((tx) => startOnboarding(tx, { request, requestedBy: "ann" }));
  const told = `onboarding ${started.onboarding_id} of newcomer`;
  const asked = selectors.map((selectorType) => ({
    selectorType,
    selectorValue: { hostname: about.hostname, ipmi_ip: about.ipmi_ip, pxe_mac: request.pxe_mac }[selectorType],
  }));
  const of = { siteId: rig.siteId, nodeId: host.nodeId };
  for (const one of asked) expect(await otherHostsOf(db(), of, one)).toEqual([told]);
  // The test writes the onboarding's rows itself, because the API refuses an onboarding of a host that another operation holds.
  await db().execute(
    sql`update node_onboardings set ipmi_ip = ${host.box.bmcAddress} where onboarding_id = ${started.onboarding_id}`,
  );
  expect(await drive(id), await driver.story(id)).toBe("completed");
  const [byName, byAddress] = logins;
  if (byName === undefined || byAddress === undefined) throw new Error("two logins were written");
  expect([await standing(byName), await standing(byAddress)]).toEqual([REMOVED, STAYS]);
  expect(await reportOf(id)).toContain(`it may be the login of ${told}`);
  await driver.verb(started.onboarding_id, "cancel");
  await driver.drive(started.onboarding_id);
  for (const one of asked) expect(await otherHostsOf(db(), of, one)).toEqual([]);
});

describe("a login that somebody writes", () => {
  it("after the request stays", async () => {
    const old = await login("hostname", host.hostname);
    const { id } = await startFull(rig, host);
    const late = await login("ipmi_ip", host.box.bmcAddress);
    expect(await drive(id), await driver.story(id)).toBe("completed");
    expect([await standing(old), await standing(late)]).toEqual([REMOVED, STAYS]);
    expect(await reportOf(id)).toContain("written or changed after the decommission was requested");
  });

  it.each([
    [
      "in the API",
      ({ id }: Login) =>
        rig.services.inTx(async (tx) => void (await changePowerOverride(tx, rig.siteId, id, { status: "active" }))),
      "somebody changed it",
    ],
    [
      "into the store",
      ({ path }: Login) => rig.secrets.write(path, { user: "u", pass: "x" }),
      "wrote another secret there",
    ],
  ])("after the choice stays: %s", async (_how, rewrite, reason) => {
    const one = await login("hostname", host.hostname);
    const { id } = await startFull(rig, host);
    await until(id, "release_maas_node");
    await rewrite(one);
    expect(await drive(id), await driver.story(id)).toBe("completed");
    expect(await standing(one)).toEqual(STAYS);
    expect(await reportOf(id)).toContain(reason);
  });

  it.each(["rerun", "restart_clean"] as const)("after its removal stays, also after a %s", async (verb) => {
    const one = await login("hostname", host.hostname);
    const { id } = await startFull(rig, host);
    await until(id, "remove_maas_record");
    expect(await standing(one)).toEqual(REMOVED);
    host.machine.hostname = "taken";
    expect(await drive(id)).toBe("failed_manual_intervention");
    await write(one);
    host.machine.hostname = host.hostname;
    await driver.verb(id, verb);
    expect(await drive(id), await driver.story(id)).toBe("completed");
    expect(await standing(one)).toEqual(STAYS);
    expect(await outcomes(id)).toEqual(["removed"]);
  });
});

/** Lets the next removal of a secret fail, before or after its effect, as when the hub is killed. */
function cutRemoval(when: "before" | "after"): void {
  const remove = rig.secrets.remove.bind(rig.secrets);
  rig.secrets.remove = async (path) => {
    rig.secrets.remove = remove;
    if (when === "after") await remove(path);
    throw new Error("the hub was killed");
  };
}

describe.each(["before", "after"] as const)("a kill of the hub %s the removal of a secret", (when) => {
  it("repeats nothing that was done, audits the login once, and lets nobody write the login meanwhile", async () => {
    const logins = [await login("hostname", host.hostname), await login("ipmi_ip", host.box.bmcAddress)];
    const { id } = await startFull(rig, host);
    await until(id, "cleanup_secrets");
    cutRemoval(when);
    await (await driver.claim(id)).run().catch(() => undefined);
    expect(await outcomes(id)).toEqual(["removing", "chosen"]);
    const [removing, untouched] = (await secretsOf(id)).map(({ login }) => login?.id ?? "");
    expect(await removerOfLogin(db(), removing ?? "")).toBe(id);
    expect(await removerOfLogin(db(), untouched ?? "")).toBeNull();
    expect(await drive(id), await driver.story(id)).toBe("completed");
    for (const one of logins) expect(await standing(one)).toEqual(REMOVED);
    const audited = await db().select().from(auditLogs).where(eq(auditLogs.action, "decommission.disable_login"));
    const own = audited.filter(({ details }) => (details as { decommission_id: string }).decommission_id === id);
    expect(own.map(({ target }) => target).sort()).toEqual(
      logins.map((one) => `power-credential-overrides/${one.id}`).sort(),
    );
    expect(await removerOfLogin(db(), removing ?? "")).toBeNull();
  });

  it("does not remove a secret that somebody wrote into the store meanwhile", async () => {
    const one = await login("hostname", host.hostname);
    const { id } = await startFull(rig, host);
    await until(id, "cleanup_secrets");
    cutRemoval(when);
    await (await driver.claim(id)).run().catch(() => undefined);
    await rig.secrets.write(one.path, { user: "u", pass: "another" });
    expect(await drive(id), await driver.story(id)).toBe("completed");
    expect(await standing(one)).toEqual([true, "disabled"]);
    expect(await outcomes(id)).toEqual(["kept"]);
  });
});

describe("the choice", () => {
  it("waits for MAAS", async () => {
    const one = await login("hostname", host.hostname);
    const { id } = await startFull(rig, host);
    await until(id, "choose_secrets");
    rig.maas.sim.faults.add({ match: {}, kind: "status", code: 503, times: 3 });
    expect(await drive(id), await driver.story(id)).toBe("completed");
    expect(rig.maas.sim.faults.list()).toEqual([]);
    expect(await standing(one)).toEqual(REMOVED);
  });

  it("chooses nothing and releases nothing while the machine is not in MAAS", async () => {
    const one = await login("hostname", host.hostname);
    const { id } = await startFull(rig, host);
    await until(id, "choose_secrets");
    const { state } = rig.maas.sim.region;
    state.machines = state.machines.filter((machine) => machine !== host.machine);
    const failed = await driver.drive(id);
    expect(failed).toMatchObject({ stage: "choose_secrets", failureCode: "bound_machine_vanished" });
    state.machines.push(host.machine);
    await driver.verb(id, "rerun");
    expect(await drive(id), await driver.story(id)).toBe("completed");
    expect(await standing(one)).toEqual(REMOVED);
  });
});

it("chooses the secrets of an operation that an older version of Muster began", async () => {
  const one = await login("hostname", host.hostname);
  const { id } = await startFull(rig, host);
  await until(id, "cleanup_secrets");
  await db().update(nodeDecommissions).set({ secrets: null }).where(eq(nodeDecommissions.decommissionId, id));
  expect(await drive(id), await driver.story(id)).toBe("completed");
  expect(await standing(one)).toEqual(REMOVED);
});
