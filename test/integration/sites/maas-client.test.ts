import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMaasClient } from "../../../hub/maas/client.ts";
import { MaasError, type MaasPort } from "../../../hub/maas/port.ts";
import { createLog } from "../../../shared/log.ts";
import { Secret } from "../../../shared/secret.ts";
import { type MaasSimulator, startMaasSimulator } from "../../fakes/maas/simulator.ts";
import { bmcAddress, PXE_NIC, ROCE_NICS, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../../fakes/maas/state/site.ts";
import { until } from "../../support/until.ts";

const SPEED = 500;
const power = { address: bmcAddress(1), user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) };
const failed = (promise: Promise<unknown>): Promise<MaasError> =>
  promise.then(
    () => {
      throw new Error("the call succeeded");
    },
    (error: unknown) => {
      if (error instanceof MaasError) return error;
      throw error;
    },
  );

describe.each(["3.5.12", "3.7.3"] as const)("the MAAS client against a simulated region %s", (version) => {
  let simulator: MaasSimulator;
  let maas: MaasPort;
  let systemId: string;
  const called = new Set<string>();

  beforeAll(async () => {
    simulator = await startMaasSimulator({ machines: 2, speed: SPEED, version });
    maas = new Proxy(createMaasClient({ baseUrl: simulator.url, apiKey: new Secret(simulator.apiKey) }), {
      get: (target, name, receiver) => {
        called.add(String(name));
        return Reflect.get(target, name, receiver);
      },
    });
  });
  afterAll(() => simulator.close());

  const control = (method: string, path: string, body?: unknown) =>
    fetch(`${simulator.controlUrl}/${path}`, {
      method,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const fault = (match: Record<string, string>, kind: string, more: Record<string, unknown> = {}) =>
    control("POST", "faults", { match, kind, times: 1, ...more });

  const reaches = (status: number) =>
    until(`status ${status}`, async () => ((await maas.readMachine(systemId))?.status === status ? true : undefined), {
      everyMs: 20,
    });

  it("reads the version, users, racks and settings of the region", async () => {
    expect((await maas.version()).version).toBe(version);
    expect(await maas.whoami()).toEqual({ username: "admin", isSuperuser: true });
    expect(await maas.rackControllers()).toMatchObject([
      { hostname: "rack1", interfaces: [{ name: "ens19", vlanVid: 310, dhcpOn: true }] },
    ]);
    expect(await maas.clockAheadSeconds()).toBe(0);
    expect((await maas.scripts("testing")).has("smartctl-validate")).toBe(true);
    expect((await maas.scripts("commissioning")).has("smartctl-validate")).toBe(false);
    expect((await maas.bootResources()).map((image) => image.name)).toContain("ubuntu/noble");
    expect(await maas.getConfig("enable_disk_erasing_on_release")).toBe(false);
    await maas.setConfig("hardware_sync_interval", "10m");
    expect(await maas.getConfig("hardware_sync_interval")).toBe("10m");
    await maas.setConfig("hardware_sync_interval", "15m");
  });

  it("creates a machine without commissioning it, and finds it by name and by BMC", async () => {
    const created = await maas.createMachine({ hostname: "c07u41", architecture: "amd64/generic", power });
    systemId = created.systemId;
    expect(created.status).toBe(0);
    expect((await maas.findByHostname("c07u41")).map((machine) => machine.systemId)).toEqual([systemId]);
    expect((await maas.powerAddresses()).get(systemId)).toBe(power.address);
    expect(await maas.systemIds()).toEqual(
      new Set(simulator.sim.region.state.machines.map((machine) => machine.systemId)),
    );
    expect(await maas.getMachineToken(systemId)).toBeNull();
    const again = await failed(maas.createMachine({ hostname: "c07u41", architecture: "amd64/generic", power }));
    expect(again).toMatchObject({ code: "rejected_input", httpStatus: 400 });
    expect(Object.keys(again.fieldErrors)).toContain("hostname");
  });

  it("commissions, then configures storage and network", async () => {
    await maas.commission(systemId);
    expect(await failed(maas.commission(systemId))).toMatchObject({ code: "state_conflict", httpStatus: 400 });
    expect(
      await failed(
        maas.deploy(systemId, {
          userDataBase64: new Secret("eA=="),
          distroSeries: "ubuntu/noble",
          enableHwSync: true,
          comment: "early",
        }),
      ),
    ).toMatchObject({ code: "state_conflict", httpStatus: 409 });
    await reaches(4);
    const boss = (await maas.blockDevices(systemId)).find((device) => /boss/i.test(device.model));
    if (boss === undefined) throw new Error("no BOSS disk");
    await maas.setBootDisk(systemId, boss.id);
    await maas.setFlatStorageLayout(systemId, boss.id);
    const rail = (await maas.interfaces(systemId)).find((nic) => nic.name === ROCE_NICS[0]);
    if (rail?.vlanId === null || rail === undefined) throw new Error("no rail");
    const subnet = await maas.createSubnet({ cidr: "172.30.0.0/31", name: "r0", vlanId: rail.vlanId, managed: false });
    expect((await maas.subnets()).map((known) => known.cidr)).toContain("172.30.0.0/31");
    const linked = await maas.linkSubnet(systemId, rail.id, {
      mode: "static",
      subnetId: subnet.id,
      ipAddress: "172.30.0.1",
    });
    expect(linked.links.map((link) => link.ipAddress)).toContain("172.30.0.1");
    expect(
      (
        await failed(
          maas.linkSubnet(systemId, rail.id, { mode: "static", subnetId: subnet.id, ipAddress: "172.30.0.1" }),
        )
      ).code,
    ).toBe("state_conflict");
    const pxe = (await maas.interfaces(systemId)).find((nic) => nic.name === PXE_NIC);
    expect(pxe?.links.some((link) => link.subnetId !== null)).toBe(true);
  });

  it("deploys with hardware sync, reads the token and the events, and releases", async () => {
    await maas.deploy(systemId, {
      userDataBase64: new Secret("IyEvYmluL3NoCg=="),
      distroSeries: "ubuntu/noble",
      enableHwSync: true,
      comment: "test",
    });
    expect((await maas.getMachineToken(systemId))?.tokenKey).toBeTruthy();
    await reaches(6);
    const [machine] = (await maas.readMachines([systemId, "zzzzzz"])).machines;
    expect(machine).toMatchObject({ systemId, enableHwSync: true, owner: "admin", statusName: "Deployed" });
    expect(machine?.lastSync).toBeInstanceOf(Date);
    expect(machine?.ipAddresses).toContain("172.30.0.1");
    const events = await maas.events({ limit: 100 });
    expect(events.some((event) => event.node === systemId)).toBe(true);
    expect(await maas.events({ after: events[0]?.id ?? 0, limit: 100 })).toEqual([]);
    expect(await maas.queryPowerState(systemId)).toBe("on");
    await maas.release(systemId, { comment: "test" });
    await reaches(4);
  });

  it("maps errors to codes, and never repeats the secret in a 401", async () => {
    expect(await maas.readMachine("zzzzzz")).toBeNull();
    const [consumer, token] = simulator.apiKey.split(":");
    const wrong = createMaasClient({ baseUrl: simulator.url, apiKey: new Secret(`${consumer}:${token}:wrongsecret`) });
    const refused = await failed(wrong.whoami());
    expect(refused).toMatchObject({ code: "unauthorized", httpStatus: 401, snippet: "" });
    const secret = simulator.apiKey.split(":")[2] ?? "";
    expect(`${refused.message}${refused.stack}${JSON.stringify(refused)}`).not.toContain(secret);
    const away = createMaasClient({ baseUrl: "http://127.0.0.1:59998/MAAS", apiKey: new Secret(simulator.apiKey) });
    expect(await failed(away.commission(systemId))).toMatchObject({ code: "unreachable", outcomeUnknown: false });
  });

  it("reports an unknown outcome when the answer to a change never comes", async () => {
    await fault({ method: "POST", op: "commission" }, "timeout_after_accept");
    const impatient = createMaasClient({
      baseUrl: simulator.url,
      apiKey: new Secret(simulator.apiKey),
      timeouts: { quickMs: 500, slowMs: 500 },
    });
    expect(await failed(impatient.commission(systemId))).toMatchObject({ code: "timeout", outcomeUnknown: true });
    expect([1, 21, 4]).toContain((await maas.readMachine(systemId))?.status);
  });

  it("aborts, changes and powers off a machine, and reads its events", async () => {
    await reaches(4);
    expect((await maas.readMachine(systemId))?.status).toBe(4);
    await maas.commission(systemId);
    expect((await maas.abort(systemId, "stop")).status).toBe(1);
    await reaches(0);
    expect((await maas.updateMachine(systemId, { hostname: "c07u43", power })).hostname).toBe("c07u43");
    await maas.commission(systemId);
    await reaches(4);
    const [mac = ""] = (await maas.readMachine(systemId))?.macAddresses ?? [];
    expect((await maas.findByMac(mac.toUpperCase())).map((machine) => machine.systemId)).toEqual([systemId]);
    expect(await maas.findByMac("02:00:00:00:00:99")).toEqual([]);
    expect((await maas.listMachines()).machines.map((machine) => machine.systemId)).toContain(systemId);
    await maas.powerOff(systemId);
    const events = await maas.machineEvents(systemId, { limit: 500, level: "DEBUG" });
    expect(new Set(events.map((event) => event.node))).toEqual(new Set([systemId]));
    expect(events.some((event) => event.type === "Node changed status")).toBe(true);
    expect((await maas.machineEvents(systemId, { limit: 500, level: "INFO" })).length).toBeLessThan(events.length);
  });

  it("moves an interface to a VLAN, removes a link, and overrides failed tests", async () => {
    const nic = (await maas.interfaces(systemId)).find((known) => known.name === ROCE_NICS[1]);
    const [subnet] = await maas.subnets();
    if (nic === undefined || subnet === undefined) throw new Error("no interface or subnet");
    expect((await maas.setInterfaceVlan(systemId, nic.id, subnet.vlanId)).vlanId).toBe(subnet.vlanId);
    const linked = await maas.linkSubnet(systemId, nic.id, { mode: "auto", subnetId: subnet.id });
    const link = linked.links.find((one) => one.subnetId === subnet.id);
    if (link === undefined) throw new Error("no link");
    const unlinked = await maas.unlinkSubnet(systemId, nic.id, link.id);
    expect(unlinked.links.map((one) => one.id)).not.toContain(link.id);
    await control("POST", `machines/${systemId}/force-status`, { status: 22 });
    expect((await maas.overrideFailedTesting(systemId)).status).toBe(4);
  });

  it("releases a deployed machine with a disk erase", async () => {
    const deploy = { userDataBase64: new Secret("eA=="), distroSeries: "ubuntu/noble", enableHwSync: false };
    const boss = (await maas.blockDevices(systemId)).find((device) => /boss/i.test(device.model));
    if (boss === undefined) throw new Error("no BOSS disk");
    await maas.setBootDisk(systemId, boss.id);
    await maas.setFlatStorageLayout(systemId, boss.id);
    await maas.deploy(systemId, { ...deploy, comment: "again" });
    await reaches(6);
    await maas.powerOff(systemId);
    await until("the machine is off", async () =>
      (await maas.queryPowerState(systemId)) === "off" ? true : undefined,
    );
    await maas.powerOn(systemId);
    await until("the machine is on", async () => ((await maas.queryPowerState(systemId)) === "on" ? true : undefined));
    expect((await maas.release(systemId, { comment: "wipe", erase: "quick" })).status).toBe(14);
    await reaches(4);
    expect(await maas.wipedDisks(systemId), "MAAS stores no output of a plain erase").toBeNull();
  });

  it.each([
    ["conflict_html_retry_after", { code: "conflict_transient", httpStatus: 409, outcomeUnknown: false }],
    ["bmc_500", { code: "power_failure", httpStatus: 500, outcomeUnknown: true }],
    ["no_rack_503", { code: "no_rack", httpStatus: 503, retryAfterSeconds: 10 }],
    ["truncated_body", { code: "unreachable", outcomeUnknown: true }],
  ] as const)("maps the fault %s", async (kind, expected) => {
    await fault({ method: "POST", op: "power_off" }, kind);
    expect(await failed(maas.powerOff(systemId))).toMatchObject(expected);
    await maas.powerOff(systemId);
  });

  it("refuses each wrong part of a token alike, and prints no secret", async () => {
    const secret = simulator.apiKey.split(":")[2] ?? "";
    const [consumer, token] = simulator.apiKey.split(":");
    const lines: string[] = [];
    const log = createLog("debug", (line) => lines.push(line));
    for (const key of [`nobody:${token}:${secret}`, `${consumer}:nobody:${secret}`, `${consumer}:${token}:wrong`]) {
      const refused = createMaasClient({
        baseUrl: simulator.url,
        apiKey: new Secret(key),
        onRequest: (report) => log.debug("request", { ...report }),
      });
      const error = await failed(refused.listMachines());
      expect(error).toMatchObject({ code: "unauthorized", httpStatus: 401 });
      log.warn("refused", { error });
    }
    expect(lines).toHaveLength(6);
    expect(lines.join()).not.toContain(secret);
    expect(await createMaasClient({ baseUrl: simulator.url, apiKey: new Secret("a:b:c") }).version()).toBeTruthy();
  });

  it("deletes a machine once, and no locked machine", async () => {
    const machine = simulator.sim.region.machine(systemId);
    machine.locked = true;
    expect(await failed(maas.deleteMachine(systemId))).toMatchObject({ code: "forbidden", httpStatus: 403 });
    machine.locked = false;
    await maas.deleteMachine(systemId);
    expect(await maas.readMachine(systemId)).toBeNull();
    expect(await failed(maas.deleteMachine(systemId))).toMatchObject({ code: "not_found", httpStatus: 404 });
  });

  it("has been called with every method of the port", () => {
    expect([...called].sort()).toEqual(expect.arrayContaining(Object.keys(maas).sort()));
  });
});
