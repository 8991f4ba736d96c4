import type { Region } from "../engine/region.ts";
import type { Link, NetworkInterface, Subnet, Vlan } from "../state/model.ts";

const API = "/MAAS/api/2.0";

export function viewVlan(region: Region, vlan: Vlan): Record<string, unknown> {
  const fabric = region.state.fabrics.find((one) => one.id === vlan.fabricId);
  return {
    vid: vlan.vid,
    mtu: vlan.mtu,
    dhcp_on: vlan.dhcpOn,
    external_dhcp: null,
    relay_vlan: null,
    id: vlan.id,
    fabric_id: vlan.fabricId,
    fabric: fabric?.name ?? `fabric-${vlan.fabricId}`,
    space: vlan.space,
    name: vlan.name,
    secondary_rack: null,
    primary_rack: vlan.dhcpOn ? region.state.rack.systemId : null,
    resource_uri: `${API}/vlans/${vlan.id}/`,
  };
}

function viewVlanById(region: Region, id: number | null): Record<string, unknown> | null {
  const vlan = region.state.vlans.find((one) => one.id === id);
  return vlan === undefined ? null : viewVlan(region, vlan);
}

export function viewSubnet(region: Region, subnet: Subnet): Record<string, unknown> {
  const vlan = region.state.vlans.find((one) => one.id === subnet.vlanId);
  return {
    name: subnet.name,
    description: subnet.description,
    vlan: viewVlanById(region, subnet.vlanId),
    cidr: subnet.cidr,
    rdns_mode: 2,
    gateway_ip: subnet.gatewayIp,
    dns_servers: subnet.dnsServers,
    allow_dns: true,
    allow_proxy: true,
    active_discovery: false,
    managed: subnet.managed,
    disabled_boot_architectures: [],
    id: subnet.id,
    space: vlan?.space ?? "undefined",
    resource_uri: `${API}/subnets/${subnet.id}/`,
  };
}

function viewLink(region: Region, link: Link): Record<string, unknown> {
  const subnet = region.state.subnets.find((one) => one.id === link.subnetId);
  return {
    id: link.id,
    mode: link.mode,
    ...(link.ipAddress === null ? {} : { ip_address: link.ipAddress }),
    ...(subnet === undefined ? {} : { subnet: viewSubnet(region, subnet) }),
  };
}

export function viewInterface(region: Region, systemId: string, nic: NetworkInterface): Record<string, unknown> {
  return {
    vlan: viewVlanById(region, nic.vlanId),
    params: nic.params,
    vendor: nic.vendor,
    id: nic.id,
    link_speed: nic.linkSpeed,
    links: nic.links.map((link) => viewLink(region, link)),
    children: [],
    effective_mtu: nic.mtu,
    product: nic.product,
    discovered: nic.discovered,
    name: nic.name,
    type: "physical",
    interface_speed: nic.interfaceSpeed,
    numa_node: nic.numaNode,
    sriov_max_vf: nic.sriovMaxVf,
    enabled: true,
    link_connected: true,
    firmware_version: nic.firmwareVersion,
    system_id: systemId,
    mac_address: nic.macAddress,
    parents: [],
    tags: nic.tags,
    resource_uri: `${API}/nodes/${systemId}/interfaces/${nic.id}/`,
  };
}

export function viewFabric(region: Region, id: number): Record<string, unknown> | null {
  const fabric = region.state.fabrics.find((one) => one.id === id);
  if (fabric === undefined) return null;
  return {
    class_type: null,
    name: fabric.name,
    vlans: region.state.vlans.filter((vlan) => vlan.fabricId === id).map((vlan) => viewVlan(region, vlan)),
    id,
    resource_uri: `${API}/fabrics/${id}/`,
  };
}

export function viewSpaces(region: Region): Record<string, unknown>[] {
  const space = (id: number, name: string, description: string, uri: string): Record<string, unknown> => ({
    description,
    id,
    vlans: region.state.vlans.filter((vlan) => vlan.space === name).map((vlan) => viewVlan(region, vlan)),
    name,
    resource_uri: `${API}/spaces/${uri}/`,
    subnets: region.state.subnets
      .filter((subnet) => region.state.vlans.some((vlan) => vlan.id === subnet.vlanId && vlan.space === name))
      .map((subnet) => viewSubnet(region, subnet)),
  });
  return [space(1, "default-space", "", "1"), space(-1, "undefined", "Everything that is in no space.", "undefined")];
}
