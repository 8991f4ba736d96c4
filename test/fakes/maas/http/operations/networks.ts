import { addressOf, hostBounds, numberOf, overlaps, parseCidr } from "../../engine/addresses.ts";
import { badFields, notFound } from "../../engine/refusal.ts";
import type { Subnet, Vlan } from "../../state/model.ts";
import { API } from "../../view/machine.ts";
import { viewFabric, viewSpaces, viewSubnet, viewVlan } from "../../view/network.ts";
import type { Call, Reply } from "../call.ts";
import { json } from "../call.ts";
import { requireAdmin } from "./access.ts";

const INVALID_CHOICE = "Select a valid choice. That choice is not one of the available choices.";

function subnetOf(call: Call): Subnet {
  const wanted = decodeURIComponent(call.params[0] ?? "");
  const subnet = call.region.state.subnets.find(
    (one) =>
      String(one.id) === wanted ||
      one.cidr === wanted ||
      `cidr:${one.cidr}` === wanted ||
      `name:${one.name}` === wanted,
  );
  if (subnet === undefined) throw notFound("Subnet");
  return subnet;
}

export function subnets(call: Call): Reply {
  return json(call.region.state.subnets.map((subnet) => viewSubnet(call.region, subnet)));
}

export function readSubnet(call: Call): Reply {
  return json(viewSubnet(call.region, subnetOf(call)));
}

export function subnetAddresses(call: Call): Reply {
  const subnet = subnetOf(call);
  const used = call.region.state.machines.flatMap((machine) =>
    machine.interfaces.flatMap((nic) =>
      nic.links
        .filter((link) => link.subnetId === subnet.id && link.ipAddress !== null)
        .map((link) => ({
          ip: link.ipAddress,
          alloc_type: link.mode === "static" ? 1 : 0,
          node_summary: {
            system_id: machine.systemId,
            hostname: machine.hostname,
            node_type: 0,
            fqdn: `${machine.hostname}.maas`,
            via: nic.name,
          },
        })),
    ),
  );
  return json(used);
}

export function subnetStatistics(call: Call): Reply {
  const subnet = subnetOf(call);
  const bounds = hostBounds(subnet);
  const total = bounds === null ? 0 : bounds.last - bounds.first + 1;
  const ranged = call.region.state.ipRanges
    .filter((range) => range.subnetId === subnet.id)
    .reduce((sum, range) => sum + numberOf(range.endIp) - numberOf(range.startIp) + 1, 0);
  const unavailable = Math.min(total, ranged + (subnet.gatewayIp === null ? 0 : 1));
  const usage = total === 0 ? 0 : unavailable / total;
  return json({
    num_available: total - unavailable,
    largest_available: Math.max(0, total - unavailable - 1),
    num_unavailable: unavailable,
    total_addresses: total,
    usage,
    usage_string: `${Math.round(usage * 100)}%`,
    available_string: `${100 - Math.round(usage * 100)}%`,
    first_address: bounds === null ? "" : addressOf(bounds.first),
    last_address: bounds === null ? "" : addressOf(bounds.last),
    ip_version: 4,
  });
}

function vlanForSubnet(call: Call, errors: Record<string, string[]>): Vlan | undefined {
  const { vlans } = call.region.state;
  const id = call.data.get("vlan");
  if (id) {
    const vlan = vlans.find((one) => String(one.id) === id);
    if (vlan === undefined) errors["vlan"] = [INVALID_CHOICE];
    return vlan;
  }
  const fabric = call.data.get("fabric") ?? "0";
  const vid = call.data.get("vid") ?? "0";
  const vlan = vlans.find((one) => String(one.fabricId) === fabric && String(one.vid) === vid);
  if (vlan === undefined) errors["vid"] = [`No VLAN with vid ${vid} in fabric ${fabric}.`];
  return vlan;
}

export function createSubnet(call: Call): Reply {
  requireAdmin(call);
  const { region } = call;
  const cidr = call.data.required("cidr");
  const errors: Record<string, string[]> = {};
  const parsed = parseCidr(cidr);
  if (parsed === null || parsed.prefix === 0) errors["cidr"] = ["Required format: <network>/<prefixlen>."];
  else if (region.state.subnets.some((one) => overlaps(one.cidr, cidr))) {
    const same = region.state.subnets.some((one) => one.cidr === cidr);
    if (!same || region.version === "3.7.3")
      errors["__all__"] = [`Subnet ${cidr} would overlap with existing subnets.`];
    if (same) errors["cidr"] = ["Subnet with this Cidr already exists."];
  }
  const vlan = vlanForSubnet(call, errors);
  if (Object.keys(errors).length > 0 || vlan === undefined) throw badFields(errors);
  const subnet: Subnet = {
    id: region.next("subnet"),
    name: call.data.get("name") || cidr,
    description: call.data.get("description") ?? "",
    cidr,
    vlanId: vlan.id,
    gatewayIp: call.data.get("gateway_ip") || null,
    dnsServers: call.data.words("dns_servers"),
    managed: call.data.flag("managed", true),
  };
  region.state.subnets.push(subnet);
  // When a client creates a subnet without a gateway, the answer shows the gateway as an empty string. Except at the creation of a subnet, MAAS shows
  // an absent gateway of a subnet as null.
  return json({ ...viewSubnet(region, subnet), gateway_ip: subnet.gatewayIp ?? "" });
}

export function deleteSubnet(call: Call): Reply {
  requireAdmin(call);
  const subnet = subnetOf(call);
  call.region.state.subnets = call.region.state.subnets.filter((one) => one !== subnet);
  return { status: 204, body: "", contentType: "text/plain" };
}

export function fabrics(call: Call): Reply {
  return json(call.region.state.fabrics.map((fabric) => viewFabric(call.region, fabric.id)));
}

export function readFabric(call: Call): Reply {
  const view = viewFabric(call.region, Number(call.params[0]));
  if (view === null) throw notFound("Fabric");
  return json(view);
}

export function fabricVlans(call: Call): Reply {
  if (viewFabric(call.region, Number(call.params[0])) === null) throw notFound("Fabric");
  return json(
    call.region.state.vlans
      .filter((vlan) => vlan.fabricId === Number(call.params[0]))
      .map((vlan) => viewVlan(call.region, vlan)),
  );
}

export function readVlan(call: Call): Reply {
  const id = call.params.at(-1);
  const vlan = call.region.state.vlans.find(
    (one) =>
      String(one.id) === id ||
      (call.params.length === 2 && String(one.fabricId) === call.params[0] && String(one.vid) === id),
  );
  if (vlan === undefined) throw notFound("VLAN");
  return json(viewVlan(call.region, vlan));
}

export function spaces(call: Call): Reply {
  return json(viewSpaces(call.region));
}

export function ipRanges(call: Call): Reply {
  const shown = call.region.state.ipRanges.map((range) => {
    const subnet = call.region.state.subnets.find((one) => one.id === range.subnetId);
    return {
      subnet: subnet === undefined ? null : viewSubnet(call.region, subnet),
      type: range.type,
      start_ip: range.startIp,
      end_ip: range.endIp,
      user: null,
      comment: "",
      id: range.id,
      resource_uri: `${API}/ipranges/${range.id}/`,
    };
  });
  return json(shown);
}
