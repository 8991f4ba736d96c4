import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openBmc } from "../../../hub/bmc/open.ts";
import { eq, sql } from "../../../hub/db/orm.ts";
import { readWorkflow } from "../../../hub/db/queries/workflows.ts";
import { nodeMaasState, type Workflow as WorkflowRow, workflows } from "../../../hub/db/schema/index.ts";
import { SECRET_PATHS } from "../../../hub/secrets/port.ts";
import { startOnboarding } from "../../../hub/workflows/onboarding/start-onboarding.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import { OnboardingCreate } from "../../../shared/api/onboardings.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import { IPMI_PASS, IPMI_USER, type IpmiSim, NO_IPMI, startIpmiSim } from "../../fakes/bmc/ipmi-sim.ts";
import { REDFISH_PASS, REDFISH_USER, type RedfishBmc, startRedfishBmc } from "../../fakes/bmc/redfish.ts";
import { TestAuthority } from "../../fakes/hub/authority.ts";
import { SITE_BMC_PASSWORD, SITE_BMC_USER } from "../../fakes/maas/state/site.ts";
import { Driver, plainly } from "../../properties/drive.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { insertSite } from "../../support/site.ts";
import { until } from "../../support/until.ts";

/**
 * If MAAS refuses to create a machine, the hub boots the host from the network by its BMC (lifecycle 4.3). After a network boot by its BMC, the hub
 * claims the machine that appears in MAAS (lifecycle 4.16).
 */
const BMC = "127.0.0.1";
const STAGE = "create_or_find_in_maas";
const REFUSES = {
  match: { method: "POST", path: "machines/" },
  kind: "status",
  code: 400,
  body: JSON.stringify({ mac_addresses: ["This field is required."] }),
  times: 1,
} as const;

let authority: TestAuthority;
let rig: OnboardingRig;
let redfish: RedfishBmc;
let driver: Driver;
let services: OnboardingRig["services"];
beforeAll(async () => {
  authority = await TestAuthority.make();
});
beforeEach(async () => {
  rig = await startOnboardingRig({ machines: 4 });
  redfish = await startRedfishBmc(await authority.server());
  services = { ...rig.services, bmc: openBmc({ caFile: null, ports: { ipmi: 1, redfish: redfish.port } }) };
  driver = new Driver(rig.test, workflowsOf(services), (id) => rig.playAgent(id));
  await useLogin({ user: REDFISH_USER, pass: REDFISH_PASS, driver: "redfish" });
  box(1).bmcAddress = BMC;
});
afterEach(async () => {
  await redfish?.close();
  await rig?.close();
});

const useLogin = (login: Record<string, string>) => rig.secrets.write(SECRET_PATHS.defaultPower(rig.siteId), login);
const region = () => rig.maas.sim.region;
const machines = () => region().state.machines;
const box = (n: number) => {
  const found = region().state.hardware[n - 1];
  if (found === undefined) throw new Error(`no box ${n}`);
  return found;
};
/** Gives the simulated host the site's BMC login, so that MAAS can reach the host's BMC. */
const sameLogin = (n: number): void => {
  box(n).bmcUser = REDFISH_USER;
  box(n).bmcPass = REDFISH_PASS;
};
async function enlist(n: number, bmc: string | null = null): Promise<string> {
  const answer = await fetch(`${rig.maas.controlUrl}/hardware/${box(n).id}/enlist`, { method: "POST" });
  const { system_id: systemId } = (await answer.json()) as { system_id: string };
  const machine = machines().find((one) => one.systemId === systemId);
  if (machine !== undefined && bmc !== null) machine.powerParameters["power_address"] = bmc;
  return systemId;
}
async function start(n: number, ipmi = BMC): Promise<WorkflowId> {
  const request = OnboardingCreate.parse({
    site_id: rig.siteId,
    profile_id: rig.profileId,
    sku_id: SKU,
    hostname: `host-${n}`,
    ipmi_ip: ipmi,
  });
  return (await services.inTx((tx) => startOnboarding(tx, { request, requestedBy: "ann" }))).onboarding_id;
}
const rowOf = async (id: WorkflowId): Promise<WorkflowRow> => {
  const row = await readWorkflow(services.db, id);
  if (row === null) throw new Error("the row is gone");
  return row;
};
interface Facts {
  maas_system_id?: string;
  discovery?: {
    triggered_at: string;
    known: string[];
    seen: Record<string, string>;
    off_at?: string | null;
    booted_at?: string | null;
  } | null;
  discovery_power?: { off_seen: boolean; booted_at: string | null } | null;
}
const factsOf = (row: { state: unknown }) => row.state as Facts;
/**
 * Runs stage after stage of the workflow, until `is` accepts the workflow's row. Throws if the workflow ends before `is` accepts the workflow's row.
 */
async function driveUntil(id: WorkflowId, is: (row: WorkflowRow) => boolean): Promise<WorkflowRow> {
  const row = await driver.drive(id, (one) => (is(one) ? null : plainly));
  if (!is(row)) throw new Error(`it ended before: ${row.failureCode} ${row.failureMessage}`);
  return row;
}
const isBooted = (row: WorkflowRow): boolean => (factsOf(row).discovery_power?.booted_at ?? null) !== null;
async function passSeconds(id: WorkflowId, seconds: number): Promise<void> {
  const state = JSON.parse(JSON.stringify((await rowOf(id)).state)) as Facts;
  const earlier = (at: string): string => new Date(Date.parse(at) - seconds * 1000).toISOString();
  const { discovery } = state;
  if (discovery) {
    discovery.triggered_at = earlier(discovery.triggered_at);
    for (const at of ["off_at", "booted_at"] as const) {
      const was = discovery[at];
      if (typeof was === "string") discovery[at] = earlier(was);
    }
    discovery.seen = Object.fromEntries(Object.entries(discovery.seen).map(([one, at]) => [one, earlier(at)]));
  }
  const back = sql.raw(`interval '${seconds} seconds'`);
  const { stageEnteredAt, stageDeadline } = workflows;
  await services.db
    .update(workflows)
    .set({ state, stageEnteredAt: sql`${stageEnteredAt} - ${back}`, stageDeadline: sql`${stageDeadline} - ${back}` })
    .where(eq(workflows.id, id));
}
const cycles = () => redfish.calls.filter((call) => call.includes('"ForceOff"')).length;

describe("a host whose machine MAAS refuses to create", () => {
  it("is power-cycled once into a network boot, and onboarded as the machine that appears", async () => {
    sameLogin(1);
    const appeared: Promise<string>[] = [];
    redfish.onBoot = (from) => {
      if (from === "Pxe") appeared.push(enlist(1));
    };
    const end = await driver.drive(await start(1));
    expect(end.failureMessage).toBeNull();
    expect(appeared).toHaveLength(1);
    expect([end.status, factsOf(end).maas_system_id]).toEqual(["completed", await appeared[0]]);
    expect([machines().length, cycles(), factsOf(end).discovery]).toEqual([1, 1, null]);
    expect(machines()[0]).toMatchObject({ hostname: "host-1", powerType: "redfish" });
    const story = await driver.story(end.id);
    expect(story).toContain(`${STAGE} returned: MAAS refuses to create the machine`);
  });

  it("is claimed as the only new machine once MAAS has had time to find out its BMC", async () => {
    const before = await enlist(2, "");
    const id = await start(1);
    await driveUntil(id, isBooted);
    const systemId = await enlist(1, "");
    await driver.step(id);
    expect((await rowOf(id)).waitReason).toContain(`find out the BMC of new machines: ${systemId}`);
    await passSeconds(id, 121);
    await driver.step(id);
    expect(factsOf(await rowOf(id)).maas_system_id).toBe(systemId);
    expect(machines().find((one) => one.systemId === before)).toMatchObject({ status: 0, owner: null });
  });

  it("is undecided if two machines appear, and found once MAAS knows which one has its BMC", async () => {
    const id = await start(1);
    await driveUntil(id, isBooted);
    const both = [await enlist(1, ""), await enlist(2, "")];
    await driver.step(id);
    await passSeconds(id, 121);
    const end = await driver.drive(id);
    expect(end).toMatchObject({ failureClass: "state_ambiguity", failureCode: "conflicting_candidates" });
    for (const systemId of both) expect(end.failureMessage).toContain(systemId);
    const right = machines().find((one) => one.systemId === both[0]);
    if (right !== undefined) right.powerParameters["power_address"] = BMC;
    await driver.verb(id, "resume");
    await driveUntil(id, (row) => row.stage !== STAGE && factsOf(row).maas_system_id !== undefined);
    expect([factsOf(await rowOf(id)).maas_system_id, cycles()]).toEqual([both[0], 1]);
  });

  it("does not claim a new machine that may belong to another awaited host", async () => {
    const id = await start(1);
    await driveUntil(id, isBooted);
    // The machine of the second host may still appear in MAAS later, because the host's BMC does not answer.
    const other = await start(2, "127.0.0.9");
    await driveUntil(other, (row) => factsOf(row).discovery !== undefined);
    await enlist(1, "");
    await driver.step(id);
    await passSeconds(id, 121);
    await driver.step(id);
    expect(await rowOf(id)).toMatchObject({ status: "running", stage: STAGE });
    expect((await rowOf(id)).waitReason).toContain("which may also be host-2");
  });
});

describe("a host that was never booted", () => {
  it("does not claim machines from before its BMC was mended, and is booted after that", async () => {
    await useLogin({ user: REDFISH_USER, pass: "wrong-password", driver: "redfish" });
    const id = await start(1);
    expect(await driver.drive(id)).toMatchObject({ failureCode: "bmc_login_refused" });
    const others = await enlist(2, "");
    await passSeconds(id, 7_200);
    await useLogin({ user: REDFISH_USER, pass: REDFISH_PASS, driver: "redfish" });
    sameLogin(1);
    await driver.verb(id, "resume");
    await driveUntil(id, isBooted);
    await passSeconds(id, 121);
    await driver.step(id);
    expect(await rowOf(id)).toMatchObject({ status: "running", stage: STAGE });
    expect((await rowOf(id)).waitReason).toContain("host-1 to appear in MAAS after its network boot");
    const own = await enlist(1, "");
    await driver.step(id);
    await passSeconds(id, 121);
    await driver.step(id);
    expect([factsOf(await rowOf(id)).maas_system_id, cycles()]).toEqual([own, 1]);
    expect(machines().find((one) => one.systemId === others)).toMatchObject({ status: 0, owner: null });
  });

  it("fails with its BMC's error, whatever other machines appear in MAAS", async () => {
    redfish.power = "PoweringOff";
    const id = await start(1);
    await driveUntil(id, (row) => factsOf(row).discovery !== undefined);
    await enlist(2, "10.99.0.2");
    await enlist(3, "");
    await driver.step(id);
    await passSeconds(id, 1_900);
    const end = await driver.drive(id);
    expect(end).toMatchObject({ failureClass: "bmc_power_failure", failureCode: "power_action_failed" });
    expect(end.failureMessage).not.toContain("was booted from the network");
  });
});

it("a cancel reports a useless network boot, and leaves the host as it is", async () => {
  const id = await start(1);
  await driveUntil(id, isBooted);
  await driver.verb(id, "cancel");
  const end = await driver.drive(id);
  expect([end.status, redfish.power, cycles()]).toEqual(["cancelled", "On", 1]);
  expect(end.failureMessage).toMatch(/^host-1 was booted from the network at 20\S+ by its BMC 127.0.0.1/);
  expect(end.nextAction).toContain("Check in MAAS whether a machine has appeared for host-1");
});

describe("a power-cycle", () => {
  const lost = async (look: { run(): Promise<unknown> }): Promise<void> => void (await look.run());

  it("happens once, even if a killed hub did not record one of its steps", async () => {
    // Like a killed hub, the test drops the result of every second run of the stage after the run has acted. The test also drops the result of the
    // first run of each step of the power-cycle that the stage makes.
    let looks = 0;
    const id = await start(1);
    const begun = (row: WorkflowRow) => (factsOf(row).discovery ?? null) !== null;
    await driveUntil(id, (row) => begun(row));
    await driver.drive(id, (row) => {
      if (isBooted(row)) return null;
      looks += 1;
      return looks % 2 === 1 ? lost : plainly;
    });
    const sent = redfish.calls.filter((call) => call.startsWith("POST"));
    expect(sent.map((call) => /ForceOff|"On"/.exec(call)?.[0])).toEqual(["ForceOff", '"On"']);
    expect([redfish.power, redfish.bootedFrom]).toEqual(["On", "Pxe"]);
  });

  it("is not repeated after an outage of MAAS: the stage waits and then continues", async () => {
    const id = await start(1);
    await driveUntil(id, isBooted);
    rig.maas.sim.faults.add({ match: { path: "machines/" }, kind: "status", code: 503, times: 1 });
    await driver.step(id);
    expect(await rowOf(id)).toMatchObject({ status: "running", stage: STAGE });
    const systemId = await enlist(1);
    await driveUntil(id, (row) => factsOf(row).maas_system_id !== undefined);
    expect([factsOf(await rowOf(id)).maas_system_id, cycles()]).toEqual([systemId, 1]);
  });

  it.each([
    [
      "is a node of another site",
      // The failure is shown to people of the onboarding's site, who must not learn the names of another site.
      /node [0-9a-f-]{36} of another site, .*is not power-cycled/,
      async () => {
        const siteId = await insertSite(services.db, { name: "dc2" });
        await services.db.update(nodeMaasState).set({ ipmiIp: BMC, siteId });
      },
    ],
    [
      "is a node whose machine MAAS has lost",
      /node host-2 .* of site dc1, .*is not power-cycled/,
      async () => {
        region().state.machines = [];
        await services.db.update(nodeMaasState).set({ ipmiIp: BMC });
      },
    ],
  ])("never hits a host that %s", async (_, says, becomes) => {
    await useLogin({ user: SITE_BMC_USER, pass: SITE_BMC_PASSWORD });
    expect(await driver.drive((await rig.start(2)).id)).toMatchObject({ status: "completed" });
    await useLogin({ user: REDFISH_USER, pass: REDFISH_PASS, driver: "redfish" });
    const id = await start(1);
    // The hub refuses an onboarding of a node's BMC, so the test gives the BMC address to a node only after the request.
    await becomes();
    const refused = await driver.drive(id);
    expect(refused).toMatchObject({ failureClass: "state_ambiguity", failureCode: "conflicting_candidates" });
    expect(refused.failureMessage).toMatch(says);
    expect(redfish.calls).toEqual([]);
  });

  it("is tried only once if the BMC refuses the login, and the failure names the login", async () => {
    await useLogin({ user: REDFISH_USER, pass: "wrong-password", driver: "redfish" });
    const end = await driver.drive(await start(1));
    expect(end).toMatchObject({
      status: "failed_manual_intervention",
      failureClass: "bmc_power_failure",
      failureCode: "bmc_login_refused",
    });
    expect(redfish.calls).toEqual(["login refused"]);
    expect(end.nextAction).toContain("Write the BMC's login again");
    expect(JSON.stringify(end)).not.toContain("wrong-password");
  });
});

describe("a discovery that finds nothing", () => {
  it("ends at the profile's timeout, counted from the boot, and a resume boots the host again", async () => {
    const id = await start(1);
    const booted = await driveUntil(id, isBooted);
    const { triggered_at: triggeredAt } = factsOf(booted).discovery ?? { triggered_at: "" };
    // The default profile allows half an hour from a host's network boot until its machine appears in MAAS. The stage's deadline counts from the
    // network boot, because the workflow entered the discovery stage anew at that boot.
    const seconds = ((booted.stageDeadline?.getTime() ?? 0) - Date.parse(triggeredAt)) / 1000;
    expect(seconds).toBeGreaterThanOrEqual(1800);
    expect(seconds).toBeLessThan(1860);
    await passSeconds(id, 1700);
    await driver.step(id);
    expect(await rowOf(id)).toMatchObject({ status: "running", stage: STAGE });
    await passSeconds(id, 170);
    const end = await driver.drive(id);
    expect(end).toMatchObject({
      status: "failed_manual_intervention",
      failureClass: "pxe_discovery_failure",
      failureCode: "discovery_timeout",
      evidence: { timeout_seconds: 1800, bmc_address: BMC },
    });
    expect(end.failureMessage).toContain("no new machine appeared in MAAS");
    expect(cycles()).toBe(1);
    await driver.verb(id, "resume");
    await driveUntil(id, isBooted);
    expect(cycles()).toBe(2);
  });

  it("adopts a machine that came at the last moment, and claims a later one without another boot", async () => {
    const id = await start(1);
    await driveUntil(id, isBooted);
    await passSeconds(id, 1900);
    expect(await driver.drive(id)).toMatchObject({ failureCode: "discovery_timeout" });
    const late = await enlist(1, "");
    await driver.verb(id, "resume");
    await driveUntil(id, (row) => row.stage === STAGE && (row.waitReason ?? "").includes(late));
    await passSeconds(id, 1900);
    await driver.step(id);
    expect(factsOf(await rowOf(id)).maas_system_id).toBe(late);
    expect(cycles()).toBe(1);
  });
});

if (NO_IPMI !== null) process.stderr.write(`${NO_IPMI}\n`);

describe.skipIf(NO_IPMI !== null)("over IPMI (SKIPPED without ipmitool and ipmi_sim)", () => {
  it("a host boots from the network and appears as a machine in MAAS", async () => {
    const enlists = `curl -sS -X POST ${rig.maas.controlUrl}/hardware/${box(1).id}/enlist`;
    const sim: IpmiSim = await startIpmiSim({ onNetworkBoot: enlists });
    try {
      await useLogin({ user: IPMI_USER, pass: IPMI_PASS });
      Object.assign(box(1), { bmcUser: IPMI_USER, bmcPass: IPMI_PASS });
      services = { ...services, bmc: openBmc({ caFile: null, ports: { ipmi: sim.port, redfish: 1 } }) };
      driver = new Driver(rig.test, workflowsOf(services), (id) => rig.playAgent(id));
      rig.maas.sim.faults.add({ ...REFUSES });
      const id = await start(1);
      // The machine of the host may appear in MAAS before the hub has seen that the host is on.
      await driveUntil(id, () => sim.power() === "on" && sim.calls().length > 1);
      await until("the host to enlist itself", () => machines().length === 1 || undefined);
      const end = await driver.drive(id);
      expect([end.failureMessage, end.status]).toEqual([null, "completed"]);
      expect(sim.calls()).toEqual([{ power: "off" }, { boot: "pxe" }, { power: "on" }]);
    } finally {
      await sim.close();
    }
  });
});
