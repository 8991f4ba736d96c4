import { describe, expect, it } from "vitest";
import { sameAddress } from "./power-address.ts";
import { Events, Interface, Machine, MachineTokenAnswer, PowerAddresses } from "./schemas.ts";

const least = { system_id: "abc123", status: 4 };

describe("a machine", () => {
  it("may lack every field except its id and status", () => {
    expect(Machine.parse(least)).toEqual({
      systemId: "abc123",
      hostname: "",
      status: 4,
      statusName: "",
      statusMessage: "",
      errorDescription: "",
      powerState: "",
      owner: null,
      locked: false,
      ipAddresses: [],
      interfaceAddresses: [],
      macAddresses: [],
      osystem: "",
      distroSeries: "",
      enableHwSync: null,
      lastSync: null,
      nextSync: null,
      syncIntervalSeconds: null,
      hardwareUuid: null,
      serial: null,
      boardSerial: null,
      chassisSerial: null,
      firmwareVersion: null,
      tags: [],
      pool: "",
      zone: "",
      architecture: "",
      cpuCount: null,
      memoryMib: null,
      ephemeral: false,
    });
  });

  it("keeps its status although fields that only an adoption uses have an unknown form", () => {
    const strange = { tag_names: "gpu", pool: 7, zone: [], hardware_info: "x", cpu_count: "many", memory: {} };
    const read = Machine.parse({ ...least, ...strange, architecture: 5, ephemeral_deploy: "no" });
    expect(read).toMatchObject({ status: 4, tags: [], pool: "", zone: "", serial: null, cpuCount: null });
    const plain = { tag_names: ["gpu"], pool: { name: "p" }, zone: { name: "z" }, cpu_count: 8, memory: 16384 };
    const info = { hardware_info: { system_serial: "Unknown" }, hardware_uuid: "u" };
    expect(Machine.parse({ ...least, ...plain, ...info })).toMatchObject({
      ...{ tags: ["gpu"], pool: "p", zone: "z", cpuCount: 8, memoryMib: 16384, serial: null, hardwareUuid: "u" },
    });
    const found = {
      system_serial: "ABC",
      mainboard_serial: "B1",
      chassis_serial: "C1",
      mainboard_firmware_version: "2",
    };
    expect(Machine.parse({ ...least, hardware_info: { ...found, chassis_serial: "Unknown" } })).toMatchObject({
      ...{ serial: "ABC", boardSerial: "B1", chassisSerial: null, firmwareVersion: "2" },
    });
  });

  it("and an event keep no secret that a script or an installer told, also where the cut would shorten it", () => {
    const said = (secret: string): string => `curl ${".".repeat(280)} ${secret}`;
    const told = said("mN3kQ7_x-Zt0aB4cD5eF6gH7iJ8kL9mN0oP1qR2sT3u failed");
    const kept = said("[redacted] failed").slice(0, 300);
    expect(Machine.parse({ ...least, status_message: told, error_description: told })).toMatchObject({
      statusMessage: kept,
      errorDescription: kept,
    });
    expect(Events.parse({ events: [{ id: 1, description: told }] })).toMatchObject([{ description: kept }]);
  });

  it("keeps an unknown status as a number", () => {
    expect(Machine.parse({ ...least, status: 99 })).toMatchObject({ status: 99 });
  });

  it("has the addresses of its links if its MAAS version lists none", () => {
    const interface_set = [
      { mac_address: "AA:BB:CC:00:11:22", links: [{ ip_address: "10.0.0.5" }, { mode: "link_up" }] },
      { mac_address: null, links: null },
    ];
    const machine = Machine.parse({ ...least, interface_set });
    expect(machine).toMatchObject({ ipAddresses: ["10.0.0.5"], macAddresses: ["aa:bb:cc:00:11:22"] });
    expect(Machine.parse({ ...least, interface_set, ip_addresses: ["10.0.0.9"] }).ipAddresses).toEqual(["10.0.0.9"]);
  });

  it("says which interface has which address, and which of them boots", () => {
    const interface_set = [
      { id: 7, name: "enp25s0np0", links: [{ ip_address: "172.30.0.1" }, { mode: "link_up" }] },
      { id: 9, name: "eno8303", links: [{ ip_address: "10.81.0.5" }] },
      { id: 10, name: null, links: [{ ip_address: "10.82.0.5" }] },
    ];
    const addresses = (more: object) => Machine.parse({ ...least, interface_set, ...more }).interfaceAddresses;
    const roce = { interface: "enp25s0np0", boots: false, address: "172.30.0.1" };
    const boot = { interface: "eno8303", boots: true, address: "10.81.0.5" };
    expect(addresses({ boot_interface: { id: 9, name: "eno8303" } })).toEqual([roce, boot]);
    expect(addresses({ boot_interface: null })).toEqual([roce, { ...boot, boots: false }]);
  });

  it("accepts times with and without a zone, and refuses other texts", () => {
    const sync = (last_sync: unknown): Date | null => Machine.parse({ ...least, last_sync }).lastSync;
    expect(sync("2026-08-21T21:37:09.123Z")).toEqual(new Date("2026-08-21T21:37:09.123Z"));
    expect(sync("2026-08-21T21:37:09.123")).toEqual(new Date("2026-08-21T21:37:09.123Z"));
    expect(sync("2026-08-21T23:37:09+02:00")).toEqual(new Date("2026-08-21T21:37:09Z"));
    expect([sync(null), sync("")]).toEqual([null, null]);
    expect(Machine.safeParse({ ...least, last_sync: "soon" }).success).toBe(false);
  });

  it("contains no text that the database would refuse", () => {
    const odd = { hostname: "a\u0000b", owner: "\ud83d", error_description: `${"x".repeat(299)}\ud83d\ude00` };
    expect(Machine.parse({ ...least, ...odd })).toMatchObject({
      hostname: "ab",
      owner: "\ufffd",
      errorDescription: `${"x".repeat(299)}\ufffd`,
    });
  });

  it.each([
    {},
    { system_id: "a" },
    { ...least, status: 2 ** 31 },
    { ...least, system_id: "a/../b" },
    { ...least, status: "Ready" },
    { ...least, locked: "no" },
    null,
    "<html>",
  ])("cannot be %j", (value) => expect(Machine.safeParse(value).success).toBe(false));
});

describe("other answers", () => {
  it("drop the passwords beside a BMC's address", () => {
    const parsed = PowerAddresses.parse({ abc123: { power_address: "10.0.0.1", power_pass: "hush" }, def456: {} });
    expect(parsed).toEqual({ abc123: { power_address: "10.0.0.1" }, def456: {} });
  });

  it("accept null for a machine token that does not exist yet", () => {
    expect(MachineTokenAnswer.parse(null)).toBeNull();
  });

  it("accept an interface without VLAN and links", () => {
    const nic = Interface.parse({ id: 1, name: "eth0", mac_address: "AA:00:00:00:00:01", vlan: null });
    expect(nic).toMatchObject({ macAddress: "aa:00:00:00:00:01", vlanId: null, links: [] });
  });

  it("keep an event's unusual time as text", () => {
    const event = { id: 7, node: "abc123", created: "Fri, 20 Nov. 2026 20:35:49" };
    expect(Events.parse({ count: 1, events: [event] })[0]).toMatchObject({ ...event, level: "", type: "" });
  });
});

it.each([
  ["10.80.0.11", " 10.80.0.11 ", true],
  ["10.80.0.11", "10.80.0.110", false],
  ["FD00:0:0::0001", "fd00::1", true],
  ["[fd00::1]", "fd00::1", true],
  ["BMC-7.example", "bmc-7.EXAMPLE", true],
  ["", "10.80.0.11", false],
])("BMC addresses %j and %j are the same: %j", (a, b, same) => {
  expect(sameAddress(a, b)).toBe(same);
});
