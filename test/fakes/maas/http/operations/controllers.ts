import { API, DOMAIN, viewHardwareInfo, viewMachine, viewScriptStatuses, viewZone } from "../../view/machine.ts";
import { viewInterface } from "../../view/network.ts";
import type { Call, Reply } from "../call.ts";
import { json } from "../call.ts";
import { mayView } from "./access.ts";

const NO_SCRIPTS = { commissioning: null, testing: null, installation: null, release: null } as const;

function controller(
  call: Call,
  kind: { systemId: string; hostname: string; type: 2 | 3; label: string; uri: string; uuid: string | null },
): Record<string, unknown> {
  const { region } = call;
  return {
    system_id: kind.systemId,
    hostname: kind.hostname,
    fqdn: `${kind.hostname}.maas`,
    domain: DOMAIN,
    description: "",
    node_type: kind.type,
    node_type_name: kind.label,
    hardware_uuid: kind.uuid,
    hardware_info: viewHardwareInfo({}),
    architecture: kind.type === 2 ? "amd64/generic" : null,
    osystem: "",
    distro_series: "",
    memory: 0,
    cpu_count: 0,
    cpu_speed: 0,
    swap_size: null,
    power_type: "",
    power_state: "unknown",
    status_action: null,
    interface_set: kind.type === 2 ? [viewInterface(region, kind.systemId, region.state.rack.nic)] : [],
    zone: viewZone(region, "default"),
    version: kind.type === 2 ? region.state.rack.version : region.version,
    tag_names: [],
    ...viewScriptStatuses(
      kind.type === 3
        ? { ...NO_SCRIPTS, commissioning: { id: 1, kind: "commissioning", status: 0, results: [] } }
        : NO_SCRIPTS,
    ),
    resource_uri: `${API}/${kind.uri}/${kind.systemId}/`,
  };
}

const RACK_SERVICES = ["syslog_rack", "proxy_rack", "rackd", "tftp", "ntp_rack", "dhcpd6", "dhcpd", "agent", "http"];

function rack(call: Call): Record<string, unknown> {
  const { rack: one } = call.region.state;
  const status = one.connected ? "running" : "dead";
  return {
    ...controller(call, { ...one, type: 2, label: "Rack controller", uri: "rackcontrollers" }),
    service_set: RACK_SERVICES.map((name) => ({ name, status, status_info: "" })),
  };
}

function regionController(call: Call): Record<string, unknown> {
  return controller(call, {
    ...call.region.state.region,
    type: 3,
    label: "Region controller",
    uri: "regioncontrollers",
    uuid: null,
  });
}

export function racks(call: Call): Reply {
  return json([rack(call)]);
}

export function regions(call: Call): Reply {
  return json([regionController(call)]);
}

export function nodes(call: Call): Reply {
  const machines = call.region.state.machines
    .filter((machine) => mayView(call.user, machine))
    .toSorted((a, b) => a.id - b.id);
  return json([...machines.map((machine) => viewMachine(call.region, machine)), rack(call), regionController(call)]);
}
