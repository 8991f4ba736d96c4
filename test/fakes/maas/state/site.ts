import { createHash } from "node:crypto";
import type { Hardware, HardwareDisk, HardwareNic, State } from "./model.ts";

/** Linux's names of the eight RoCE network cards of a GPU server. */
export const ROCE_NICS = [
  "enp28s0np0",
  "enp29s0np0",
  "enp62s0np0",
  "enp63s0np0",
  "enp156s0np0",
  "enp157s0np0",
  "enp190s0np0",
  "enp191s0np0",
] as const;
export const PXE_NIC = "eno8303";

/** The user name of every simulated server's BMC. */
export const SITE_BMC_USER = "root";
export const SITE_BMC_PASSWORD = "sim-bmc-password";

const PXE_VID = 310;
/** The rack controller's interface in the network from which hosts boot. */
const RACK_NIC = "ens19";
const FIRST_RAIL_VID = 2001;
const BMC_NETWORK = "10.80.0";

/** Returns the address of the BMC of the n-th simulated server, counted from 1. */
export function bmcAddress(n: number): string {
  return `${BMC_NETWORK}.${10 + n}`;
}

/**
 * The prefixes under which Broadcom and Mellanox give MAC addresses to their interfaces. Real hosts have such universally administered addresses, which
 * no second machine has, and the hub takes no other MAC address for a proof of a machine.
 */
const OUI = { broadcom: "00:10:18", mellanox: "b8:59:9f" } as const;

/** The n-th MAC address of a prefix, so that an interface has the same address after each restart. */
function macOf(vendor: keyof typeof OUI, n: number): string {
  const digits = n.toString(16).padStart(6, "0");
  return [OUI[vendor], digits.slice(0, 2), digits.slice(2, 4), digits.slice(4)].join(":");
}

function uuidOf(name: string): string {
  const hex = createHash("sha256").update(name).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function next(state: State, sequence: string): number {
  const value = (state.sequences[sequence] ?? 0) + 1;
  state.sequences[sequence] = value;
  return value;
}

export interface SiteNetworks {
  pxeVlanId: number;
  /** The ids of the VLANs of the RoCE rails, in the order of `ROCE_NICS`. */
  railVlanIds: number[];
}

function layNetworks(state: State): SiteNetworks {
  const pxeVlanId = next(state, "vlan");
  state.vlans.push({
    id: pxeVlanId,
    vid: PXE_VID,
    name: "pxe",
    fabricId: 0,
    mtu: 1500,
    dhcpOn: true,
    space: "default-space",
  });
  const pxeSubnet = next(state, "subnet");
  state.subnets.push({
    id: pxeSubnet,
    name: "pxe",
    description: "",
    cidr: "10.81.0.0/22",
    vlanId: pxeVlanId,
    gatewayIp: "10.81.0.1",
    dnsServers: ["10.81.0.1"],
    managed: true,
  });
  state.ipRanges.push({
    id: next(state, "iprange"),
    subnetId: pxeSubnet,
    type: "dynamic",
    startIp: "10.81.2.0",
    endIp: "10.81.3.254",
  });
  const bmcSubnet = next(state, "subnet");
  state.subnets.push({
    id: bmcSubnet,
    name: "bmc",
    description: "",
    cidr: `${BMC_NETWORK}.0/24`,
    vlanId: 5001,
    gatewayIp: null,
    dnsServers: [],
    managed: true,
  });
  const fabricId = next(state, "fabric");
  state.fabrics.push({ id: fabricId, name: "fabric-roce" });
  const railVlanIds = ROCE_NICS.map((_, rail) => {
    const id = next(state, "vlan");
    state.vlans.push({
      id,
      vid: FIRST_RAIL_VID + rail,
      name: `rail-${rail}`,
      fabricId,
      mtu: 9000,
      dhcpOn: false,
      space: "undefined",
    });
    return id;
  });
  return { pxeVlanId, railVlanIds };
}

const GB = 1000 ** 3;

function disks(serialBase: string): HardwareDisk[] {
  const boot: HardwareDisk = {
    name: "sda",
    model: "DELLBOSS VD",
    serial: `${serialBase}B0`,
    size: 480_103_981_056,
    blockSize: 512,
    tags: ["ssd"],
    firmwareVersion: "2.6.13.3025",
  };
  const data = Array.from(
    { length: 8 },
    (_, index): HardwareDisk => ({
      name: `nvme${index}n1`,
      model: "Dell NVMe PM1743 RI E3.S 3.84TB",
      serial: `${serialBase}N${index}`,
      size: 3840 * GB,
      blockSize: 512,
      tags: ["ssd", "nvme"],
      firmwareVersion: "1.2.0",
    }),
  );
  return [boot, ...data];
}

/** A simulated server's boot interface comes last, so that code which wrongly takes the first interface fails. */
function nics(n: number, networks: SiteNetworks): HardwareNic[] {
  const pxe: HardwareNic = {
    name: PXE_NIC,
    mac: macOf("broadcom", n),
    vlanId: networks.pxeVlanId,
    pxe: true,
    vendor: "Broadcom Inc. and subsidiaries",
    product: "NetXtreme BCM5720 Gigabit Ethernet PCIe",
    linkSpeed: 1000,
  };
  const roce = ROCE_NICS.map(
    (nic, rail): HardwareNic => ({
      name: nic,
      mac: macOf("mellanox", n * ROCE_NICS.length + rail),
      vlanId: networks.railVlanIds[rail] ?? networks.pxeVlanId,
      pxe: false,
      vendor: "Mellanox Technologies",
      product: "MT2910 Family [ConnectX-7]",
      linkSpeed: 400_000,
    }),
  );
  return [...roce, pxe];
}

function siteHardware(n: number, networks: SiteNetworks): Hardware {
  const id = `box-${String(n).padStart(2, "0")}`;
  const serial = `SIM${String(n).padStart(4, "0")}`;
  return {
    id,
    bmcAddress: bmcAddress(n),
    bmcUser: SITE_BMC_USER,
    bmcPass: SITE_BMC_PASSWORD,
    bmcReachable: true,
    hangs: false,
    power: "off",
    cpuCount: 256,
    cores: 128,
    memoryMib: 2 * 1024 * 1024,
    uuid: uuidOf(id),
    info: {
      system_vendor: "Dell Inc.",
      system_product: "PowerEdge XE9680",
      system_serial: serial,
      system_sku: "SKU=0A6B",
      cpu_model: "AMD EPYC 9555 64-Core Processor",
      mainboard_vendor: "Dell Inc.",
      mainboard_serial: `.${serial}.CNWS3008.`,
      mainboard_firmware_version: "2.5.4",
      chassis_vendor: "Dell Inc.",
      chassis_type: "Rack Mount Chassis",
      chassis_serial: serial,
    },
    disks: disks(serial),
    nics: nics(n, networks),
  };
}

export function buildSite(state: State, count: number): SiteNetworks {
  const networks = layNetworks(state);
  state.rack.nic = { ...state.rack.nic, name: RACK_NIC, vlanId: networks.pxeVlanId };
  for (let n = 1; n <= count; n += 1) state.hardware.push(siteHardware(n, networks));
  return networks;
}
