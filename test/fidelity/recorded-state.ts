import { failDeploy } from "../fakes/maas/engine/deploy.ts";
import type { Region } from "../fakes/maas/engine/region.ts";
import { applyLayout, diskRecord } from "../fakes/maas/engine/storage.ts";
import { blankMachine } from "../fakes/maas/http/operations/machine-form.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";

const GB = 1000 ** 3;

/** Creates the recorded MAAS region's networks and hosts in the simulator. In the recording, a person entered the inventory of one host by hand. */
export function seedRecordedSite(region: Region): void {
  const { state } = region;
  state.fabrics.push({ id: 1, name: "fabric-data" });
  state.vlans.push({ id: 5002, vid: 0, name: "untagged", fabricId: 1, mtu: 1500, dhcpOn: false, space: "undefined" });
  const subnet = { description: "", managed: true };
  state.subnets.push(
    {
      ...subnet,
      id: 1,
      name: "pxe",
      cidr: "10.10.0.0/24",
      vlanId: 5001,
      gatewayIp: "10.10.0.1",
      dnsServers: ["10.10.0.1"],
    },
    { ...subnet, id: 2, name: "bmc", cidr: "10.0.0.0/24", vlanId: 5001, gatewayIp: null, dnsServers: [] },
    { ...subnet, id: 3, name: "data", cidr: "10.20.0.0/24", vlanId: 5002, gatewayIp: "10.20.0.1", dnsServers: [] },
  );
  Object.assign(state.sequences, { subnet: 3, vlan: 5002, fabric: 1 });
  state.ipRanges.push({ id: 1, subnetId: 1, type: "dynamic", startIp: "10.10.0.100", endIp: "10.10.0.200" });
  state.rack.nic.links.push({ id: 1, mode: "auto", subnetId: 1, ipAddress: null });
  state.rack.nic.tags = ["rack"];
  state.rack.version = null;
  for (const address of ["10.0.0.9", "10.0.0.77", "10.0.0.8"]) addBox(region, address, address === "10.0.0.9");
}

function addBox(region: Region, bmcAddress: string, inventoried: boolean): void {
  const disk = { blockSize: 512, tags: ["ssd"], firmwareVersion: null };
  const nic = { vlanId: 5001, vendor: null, product: null, linkSpeed: 0 };
  region.state.hardware.push({
    id: `box-${bmcAddress}`,
    bmcAddress,
    bmcUser: "",
    bmcPass: "",
    bmcReachable: true,
    hangs: false,
    power: "off",
    cpuCount: 8,
    cores: 0,
    memoryMib: 16_384,
    uuid: null,
    info: {},
    disks: inventoried
      ? [
          { ...disk, name: "sda", model: "MODEL-sda", serial: "SER-sda", size: 240 * GB },
          { ...disk, name: "nvme0n1", model: "MODEL-nvme0n1", serial: "SER-nvme0n1", size: 960 * GB },
        ]
      : [],
    nics: inventoried
      ? [
          { ...nic, name: "eth0", mac: "52:54:00:aa:00:10", pxe: true },
          { ...nic, name: "eth1", mac: "52:54:00:aa:00:11", pxe: false },
        ]
      : [],
  });
}

interface MadeMachine {
  hostname: string;
  powerType: "manual" | "redfish";
  disks: boolean;
}

/**
 * Creates a machine that a person set to Ready for the recording. MAAS never commissioned this machine of the recording, so the machine's values are
 * invented.
 */
function makeReady(region: Region, made: MadeMachine): void {
  const machine = blankMachine(region);
  Object.assign(machine, {
    hostname: made.hostname,
    architecture: "amd64/generic",
    powerType: made.powerType,
    powerParameters:
      made.powerType === "redfish" ? { power_address: "10.0.0.8", power_user: "", power_pass: "", node_id: "" } : {},
    powerState: "off",
    status: STATUS.ready,
    minHweKernel: null,
    hardwareUuid: region.newUuid(),
    biosBootMethod: "uefi",
    cpuCount: 8,
    cores: [0, 1, 2, 3, 4, 5, 6, 7],
    memory: 16_384,
  } satisfies Partial<Machine>);
  machine.interfaces = [
    {
      id: region.next("interface"),
      name: "eth0",
      macAddress: `52:54:00:bb:00:${String(machine.id).padStart(2, "0")}`,
      vlanId: 5001,
      links: [{ id: region.next("link"), mode: "auto", subnetId: 1, ipAddress: null }],
      params: "",
      vendor: "vendor",
      product: "product",
      firmwareVersion: null,
      linkSpeed: 1000,
      interfaceSpeed: 1000,
      numaNode: 0,
      sriovMaxVf: 0,
      mtu: 1500,
      tags: ["made"],
      discovered: null,
    },
  ];
  machine.bootInterfaceId = machine.interfaces[0]?.id ?? null;
  region.state.machines.push(machine);
  if (!made.disks) return;
  for (const [name, size] of [
    ["sda", 240 * GB],
    ["nvme0n1", 960 * GB],
  ] as const) {
    machine.blockDevices.push(
      diskRecord(
        region,
        {
          name,
          model: `MODEL-${name}`,
          serial: `SER-${machine.systemId}-${name}`,
          size,
          blockSize: 512,
          tags: ["made"],
          firmwareVersion: "1.0",
        },
        null,
      ),
    );
  }
  applyLayout(region, machine, { layout: "flat", rootDevice: null, rootSize: null });
}

function named(region: Region, hostname: string): Machine {
  const machine = region.state.machines.find((one) => one.hostname === hostname);
  if (machine === undefined) throw new Error(`The replay expects a machine called ${hostname} by now.`);
  return machine;
}

type Step = (region: Region) => void;

function settle(hostname: string): Step {
  return (region) => region.settle(named(region, hostname));
}

function ready(hostname: string, powerType: MadeMachine["powerType"] = "manual", disks = true): Step {
  return (region) => makeReady(region, { hostname, powerType, disks });
}

/** What a person did by hand before an exchange of the recording, by the exchange's name. */
export const BY_HAND: Readonly<Record<string, Step>> = {
  version: ready("m1"),
  "machine-read-after-abort": settle("s-renamed"),
  "machine-read-ready": (region) => {
    const machine = named(region, "s-renamed");
    region.settle(machine);
    // In the recording, somebody declared the machine's hardware tests passed, although the tests never ran.
    for (const result of machine.scriptSets.testing?.results ?? []) result.ended = null;
  },
  "machine-read-deployed": settle("s-renamed"),
  "machine-power-on": settle("s-renamed"),
  "machine-rescue-mode": settle("s-renamed"),
  "machine-mark-broken-deployed": settle("s-renamed"),
  "machine-mark-fixed": settle("s-renamed"),
  "machine-read-failed-deployment": (region) => failDeploy(region, named(region, "m1"), "installer failed"),
  "machines-list": ready("m2"),
  "machine-update-power": ready("m3"),
  "machine-read-abort-broken": settle("m3"),
  "machine-deploy-ephemeral": ready("m8", "redfish"),
  "machine-read-after-abort-deploy": settle("m8"),
  "machine-read-deployed-on": settle("m8"),
  "machine-read-after-release-power-on": settle("m8"),
  "machine-read-failed-commissioning": (region) => {
    const machine = named(region, "m8");
    region.state.plans[machine.systemId] = { commission: ["fail"], deploy: [] };
    region.settle(machine);
  },
  "machine-lock-ready-409": ready("m6"),
  "machine-deploy-no-storage": ready("m7", "manual", false),
};
