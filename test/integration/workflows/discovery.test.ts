import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startOnboarding } from "../../../hub/workflows/onboarding/start-onboarding.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import { OnboardingCreate } from "../../../shared/api/onboardings.ts";
import type { ProfileId } from "../../../shared/ids.ts";
import { Secret } from "../../../shared/secret.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../../fakes/maas/state/site.ts";
import { nextVerbOf } from "../../properties/converge.ts";
import { Driver } from "../../properties/drive.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../../support/onboarding-rig.ts";

/** Tests which machine in MAAS an onboarding takes for its host, rule by rule (lifecycle 4.16). */
let rig: OnboardingRig;
let driver: Driver;
beforeEach(async () => {
  rig = await startOnboardingRig({ machines: 6 });
  driver = new Driver(rig.test, workflowsOf(rig.services), (id) => rig.playAgent(id));
});
afterEach(() => rig?.close());

const machines = () => rig.maas.sim.region.state.machines;
const box = (n: number) => {
  const found = rig.maas.sim.region.state.hardware.find((one) => one.bmcAddress === bmcAddress(n));
  if (found === undefined) throw new Error(`no box ${n}`);
  return found;
};
const record = async (hostname: string, bmc: string) =>
  (await rig.services.maas(rig.siteId)).createMachine({
    hostname,
    architecture: "amd64/generic",
    power: { address: bmc, user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) },
  });
/** Boots the simulated host from the network, so that MAAS creates a machine for the host. */
const enlist = async (n: number): Promise<string> => {
  const answer = await fetch(`${rig.maas.controlUrl}/hardware/${box(n).id}/enlist`, { method: "POST" });
  return ((await answer.json()) as { system_id: string }).system_id;
};
/** Sets the BMC address of a machine in MAAS, by default to an empty address. */
const forgetBmc = (systemId: string, bmc = ""): void => {
  const enlisted = machines().find((one) => one.systemId === systemId);
  if (enlisted === undefined) throw new Error(`no machine ${systemId}`);
  enlisted.powerParameters["power_address"] = bmc;
};
const claiming = () => rig.addProfile("claiming", { auto_claim_single_new_machine: true });
async function onboard(n: number, fields: { pxe_mac?: string; profile?: ProfileId } = {}) {
  const { profile = rig.profileId, ...more } = fields;
  const request = OnboardingCreate.parse({
    site_id: rig.siteId,
    profile_id: profile,
    sku_id: SKU,
    hostname: `host-${n}`,
    ipmi_ip: bmcAddress(n),
    ...more,
  });
  const { onboarding_id: id } = await rig.services.inTx((tx) => startOnboarding(tx, { request, requestedBy: "ann" }));
  return { id, end: await driver.drive(id) };
}
const systemIdOf = (row: { state: unknown }) => (row.state as { maas_system_id?: string }).maas_system_id;

describe("the machine of an onboarding", () => {
  it("is the machine with its name", async () => {
    const { systemId } = await record("host-1", "10.99.9.9");
    const known = machines().find((one) => one.systemId === systemId);
    if (known !== undefined) known.powerParameters["power_address"] = bmcAddress(1);
    const { end } = await onboard(1);
    expect([systemIdOf(end), machines().length]).toEqual([systemId, 1]);
  });

  it("is otherwise the machine with its BMC, which gets its name", async () => {
    const { systemId } = await record("some-other-name", bmcAddress(1));
    const { end } = await onboard(1);
    expect([systemIdOf(end), end.status]).toEqual([systemId, "completed"]);
    expect(machines().map((one) => one.hostname)).toEqual(["host-1"]);
  });

  it("is otherwise the machine with the MAC address of the request", async () => {
    const systemId = await enlist(1);
    forgetBmc(systemId);
    const mac = box(1).nics.find((nic) => nic.pxe)?.mac ?? "";
    const { end } = await onboard(1, { pxe_mac: mac.toUpperCase() });
    expect([systemIdOf(end), end.status]).toEqual([systemId, "completed"]);
    expect(machines()).toHaveLength(1);
  });

  it("is otherwise a new machine, and other new machines in MAAS are not touched", async () => {
    const other = await enlist(2);
    const { end } = await onboard(1);
    expect(end.status).toBe("completed");
    expect(systemIdOf(end)).not.toBe(other);
    expect(machines().find((one) => one.systemId === other)).toMatchObject({ status: 0 });
  });

  it("is undecided if two machines fit: the onboarding fails, names both, and continues once one is gone", async () => {
    const byName = await record("host-1", "10.99.9.9");
    const byBmc = await record("some-other-name", bmcAddress(1));
    const { id, end } = await onboard(1);
    expect(end).toMatchObject({
      status: "failed_manual_intervention",
      failureClass: "state_ambiguity",
      failureCode: "conflicting_candidates",
    });
    const named = JSON.stringify(end.evidence);
    for (const { systemId } of [byName, byBmc]) {
      expect(named).toContain(systemId);
      expect(end.failureMessage).toContain(systemId);
    }
    expect(machines()).toHaveLength(2);
    for (const machine of machines()) expect(machine).toMatchObject({ status: 0, owner: null });
    const { state } = rig.maas.sim.region;
    state.machines = state.machines.filter((one) => one.systemId !== byName.systemId);
    await driver.verb(id, nextVerbOf(end));
    const after = await driver.drive(id);
    expect([systemIdOf(after), after.status]).toEqual([byBmc.systemId, "completed"]);
  });

  it("is undecided if a machine with its name has another BMC, and that machine is not touched", async () => {
    const { systemId } = await record("host-1", bmcAddress(2));
    const { id, end } = await onboard(1);
    expect(end).toMatchObject({
      status: "failed_manual_intervention",
      failureClass: "state_ambiguity",
      failureCode: "conflicting_candidates",
    });
    expect(end.failureMessage).toContain(`${systemId} (hostname, BMC ${bmcAddress(2)})`);
    expect(end.failureMessage).toContain(`host-1 with BMC ${bmcAddress(1)}`);
    expect(machines()).toHaveLength(1);
    const [other] = machines();
    if (other === undefined) throw new Error("the machine is gone");
    expect(other).toMatchObject({ status: 0, owner: null, powerParameters: { power_address: bmcAddress(2) } });
    // The test corrects the machine's BMC address in MAAS, as a person would who recognizes the host.
    other.powerParameters["power_address"] = bmcAddress(1);
    await driver.verb(id, nextVerbOf(end));
    const after = await driver.drive(id);
    expect([systemIdOf(after), after.status]).toEqual([systemId, "completed"]);
  });

  it("is not a machine with its MAC address if MAAS knows that machine by another BMC", async () => {
    const other = await enlist(2);
    const mac = box(2).nics.find((nic) => nic.pxe)?.mac ?? "";
    const { end } = await onboard(1, { pxe_mac: mac });
    expect(end).toMatchObject({ failureClass: "state_ambiguity", failureCode: "conflicting_candidates" });
    expect(end.failureMessage).toContain(`${other} (MAC address, BMC ${bmcAddress(2)})`);
    expect(machines().find((one) => one.systemId === other)).toMatchObject({ status: 0, owner: null });
  });

  it("is the machine with its name if MAAS knows no BMC of it", async () => {
    const { systemId } = await record("host-1", bmcAddress(1));
    forgetBmc(systemId);
    const { end } = await onboard(1);
    expect([systemIdOf(end), end.status, machines().length]).toEqual([systemId, "completed", 1]);
  });

  it("may be the only new machine without a known BMC, if the profile allows the claim", async () => {
    const sole = await enlist(1);
    forgetBmc(sole);
    const row = await onboard(1, { profile: await claiming() });
    expect([systemIdOf(row.end), row.end.status]).toEqual([sole, "completed"]);
    expect(machines()).toHaveLength(1);
  });

  it("is never a new machine with another known BMC, because that would be another host", async () => {
    const other = await enlist(2);
    const { end } = await onboard(1, { profile: await claiming() });
    expect(end.status).toBe("completed");
    expect(systemIdOf(end)).not.toBe(other);
    const untouched = machines().find((one) => one.systemId === other);
    expect(untouched).toMatchObject({ status: 0, owner: null, powerParameters: { power_address: bmcAddress(2) } });
  });

  it("is not claimed if MAAS knows its BMC only by a DNS name", async () => {
    const sole = await enlist(1);
    forgetBmc(sole, "bmc-7.example.net");
    const { end } = await onboard(1, { profile: await claiming() });
    expect(end).toMatchObject({ failureClass: "state_ambiguity", failureCode: "conflicting_candidates" });
    expect(end.failureMessage).toContain(`${sole} (status New, BMC bmc-7.example.net)`);
    expect(machines()).toHaveLength(1);
  });

  it("is neither of two new machines, even if the profile allows a claim", async () => {
    const both = [await enlist(2), await enlist(3)];
    for (const systemId of both) forgetBmc(systemId);
    const { end } = await onboard(1, { profile: await claiming() });
    expect(end).toMatchObject({ failureClass: "state_ambiguity", failureCode: "conflicting_candidates" });
    for (const systemId of both) expect(end.failureMessage).toContain(systemId);
    for (const machine of machines()) expect(machine).toMatchObject({ status: 0, owner: null });
  });
});
