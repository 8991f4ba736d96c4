import { isIP } from "node:net";
import type { Link, LinkMode, Machine, NetworkInterface, Subnet } from "../state/model.ts";
import { allows } from "../state/statuses.ts";
import { addressOf, contains, hostBounds, inRange, numberOf } from "./addresses.ts";
import { badFields, notOneOf, Refusal, required, stateConflict } from "./refusal.ts";
import type { Region } from "./region.ts";

const MODES = ["auto", "dhcp", "static", "link_up"] as const satisfies readonly LinkMode[];

function addLink(
  region: Region,
  nic: NetworkInterface,
  mode: LinkMode,
  subnetId: number | null,
  ipAddress: string | null = null,
): Link {
  const link: Link = { id: region.next("link"), mode, subnetId, ipAddress };
  nic.links.push(link);
  return link;
}

export function clearLinks(machine: Machine): void {
  for (const nic of machine.interfaces) nic.links = [];
}

/**
 * After a commissioning run, the boot interface gets an AUTO link on the first subnet of its VLAN, or else a DHCP link. After a commissioning run,
 * every interface except the boot interface gets a LINK_UP link, which has no subnet and no address.
 */
export function linkDiscovered(region: Region, machine: Machine): void {
  for (const nic of machine.interfaces) {
    const subnet = region.state.subnets.find((one) => one.vlanId === nic.vlanId);
    if (nic.id !== machine.bootInterfaceId) addLink(region, nic, "link_up", null);
    else if (subnet === undefined) addLink(region, nic, "dhcp", null);
    else addLink(region, nic, "auto", subnet.id);
  }
}

export function requireNetworkWrite(machine: Machine): void {
  if (allows("networkWrite", machine.status)) return;
  throw stateConflict("Cannot link subnet interface because the machine is not New, Ready, Allocated, or Broken.");
}

const takenAddresses = (region: Region): Set<string | null> =>
  new Set(
    region.state.machines.flatMap(({ interfaces }) =>
      interfaces.flatMap(({ links }) => links.map(({ ipAddress }) => ipAddress)),
    ),
  );

function findSubnet(region: Region, specifier: string): Subnet | undefined {
  const [kind, ...rest] = specifier.split(":");
  const value = rest.join(":");
  return region.state.subnets.find(
    (one) =>
      String(one.id) === specifier ||
      one.cidr === specifier ||
      (kind === "cidr" && one.cidr === value) ||
      (kind === "name" && one.name === value),
  );
}

export interface LinkRequest {
  mode: string | null;
  subnet: string | null;
  ipAddress: string | null;
  force: boolean;
}

function chosenSubnet(region: Region, nic: NetworkInterface, request: LinkRequest, mode: LinkMode): Subnet | null {
  const needed = mode === "auto" || mode === "static";
  if (request.subnet === null || request.subnet === "") {
    if (needed) throw required("subnet");
    return null;
  }
  const subnet = findSubnet(region, request.subnet);
  const reachable = subnet !== undefined && (nic.vlanId === null || request.force || subnet.vlanId === nic.vlanId);
  if (!reachable)
    throw badFields({
      subnet: [`None found with id=${request.subnet}.`, ...(needed ? ["This field is required."] : [])],
    });
  return subnet;
}

function checkStaticAddress(region: Region, subnet: Subnet, address: string): void {
  const vlan = region.state.vlans.find((one) => one.id === subnet.vlanId);
  if (isIP(address) === 0) throw badFields({ ip_address: ["Enter a valid IPv4 or IPv6 address."] });
  if (!contains(subnet.cidr, address))
    throw badFields({
      ip_address: [`IP address is not in the given subnet '${subnet.name}:${subnet.cidr}(vid=${vlan?.vid ?? 0})'.`],
    });
  const dynamic = region.state.ipRanges.some(
    (range) => range.subnetId === subnet.id && range.type === "dynamic" && inRange(address, range.startIp, range.endIp),
  );
  if (dynamic) throw badFields({ ip_address: ["IP address is inside a dynamic range on the same subnet."] });
  if (takenAddresses(region).has(address)) throw new Refusal(404, "IP address is already in use.");
}

/** Returns a free address of the subnet, outside all ranges of the subnet. Throws a refusal with status 503 when the subnet has no free address. */
function pickAddress(region: Region, subnet: Subnet): string {
  const bounds = hostBounds(subnet);
  const taken = takenAddresses(region).add(subnet.gatewayIp);
  const ranges = region.state.ipRanges.filter((range) => range.subnetId === subnet.id);
  const reserved = ranges.map(({ startIp, endIp }) => ({ from: numberOf(startIp), to: numberOf(endIp) }));
  for (let number = bounds?.first ?? 1; bounds !== null && number <= bounds.last; number += 1) {
    const address = addressOf(number);
    if (!taken.has(address) && !reserved.some(({ from, to }) => from <= number && number <= to)) return address;
  }
  throw new Refusal(503, `No more IPs available in subnet: ${subnet.cidr}.`);
}

export function linkSubnet(region: Region, nic: NetworkInterface, request: LinkRequest): void {
  if (request.mode === null || request.mode === "") throw required("mode");
  const mode = MODES.find((one) => one === request.mode?.toLowerCase());
  if (mode === undefined) throw badFields({ mode: [notOneOf(request.mode.toLowerCase(), "mode", MODES)] });
  const subnet = chosenSubnet(region, nic, request, mode);
  if (mode === "dhcp" && nic.links.some((link) => link.mode === "dhcp"))
    throw badFields({ mode: ["Interface is already set to DHCP."] });
  if (mode === "link_up" && nic.links.some((link) => link.mode !== "link_up") && !request.force) {
    throw badFields({
      mode: ["Cannot configure interface to link up (with no IP address) while other links are already configured."],
    });
  }
  if (mode === "static" && subnet !== null && request.ipAddress) checkStaticAddress(region, subnet, request.ipAddress);
  if (request.force) nic.links = [];
  else if (mode === "auto" || mode === "static")
    nic.links = nic.links.filter((link) => link.mode !== "dhcp" && link.mode !== "link_up");
  else nic.links = nic.links.filter((link) => link.mode !== "link_up");
  if (subnet !== null && (nic.vlanId === null || request.force)) nic.vlanId = subnet.vlanId;
  const address = mode === "static" && subnet !== null ? request.ipAddress || pickAddress(region, subnet) : null;
  addLink(region, nic, mode, subnet?.id ?? null, address);
}

/** An interface without a link to a subnet gets a LINK_UP link, which has no address. */
export function unlinkSubnet(region: Region, nic: NetworkInterface, linkId: string | null): void {
  if (linkId === null || linkId === "") throw required("id");
  const choices = nic.links.map((link) => String(link.id));
  if (!choices.includes(linkId)) throw badFields({ id: [notOneOf(linkId, "id", choices)] });
  nic.links = nic.links.filter((link) => String(link.id) !== linkId);
  if (nic.links.length === 0) addLink(region, nic, "link_up", null);
}

export function assignAutoAddresses(region: Region, machine: Machine): void {
  for (const nic of machine.interfaces) {
    for (const link of nic.links) {
      const subnet = region.state.subnets.find((one) => one.id === link.subnetId);
      if (link.mode === "auto" && link.ipAddress === null && subnet !== undefined)
        link.ipAddress = pickAddress(region, subnet);
    }
  }
}

/**
 * Changes the boot interface's AUTO link to a STATIC link, and keeps the address. The boot interface's link to its subnet stays STATIC after the
 * machine's release.
 */
export function keepBootAddress(machine: Machine): void {
  const boot = machine.interfaces.find((nic) => nic.id === machine.bootInterfaceId);
  for (const link of boot?.links ?? []) if (link.mode === "auto" && link.ipAddress !== null) link.mode = "static";
}

export function freeAutoAddresses(machine: Machine): void {
  for (const nic of machine.interfaces) {
    for (const link of nic.links) if (link.mode === "auto") link.ipAddress = null;
  }
}
