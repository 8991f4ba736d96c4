import type { Handler } from "./call.ts";
import * as account from "./operations/account.ts";
import * as controllers from "./operations/controllers.ts";
import * as events from "./operations/events.ts";
import * as machine from "./operations/machine.ts";
import * as machines from "./operations/machines.ts";
import * as networks from "./operations/networks.ts";
import * as parts from "./operations/node-parts.ts";
import * as site from "./operations/site.ts";

/** A path of MAAS's API with its operations, each under the key `METHOD` or `METHOD op`. */
export interface Resource {
  path: RegExp;
  /** If true, an unsigned request to the path gets the answer that MAAS gives for an unknown operation. */
  unsignedIsUnrecognised?: true;
  operations: Readonly<Record<string, Handler>>;
}

const ID = "([^/]+)";

function at(path: string, operations: Resource["operations"]): Resource {
  return { path: new RegExp(`^${path}$`), operations };
}

/** Every path below `/MAAS/api/2.0/` that the simulator answers. The trailing slash is part of each path of MAAS's API. */
export const RESOURCES: readonly Resource[] = [
  {
    ...at("machines/", {
      GET: machines.list,
      "GET power_parameters": machines.listPowerParameters,
      "GET list_allocated": machines.listAllocated,
      "GET is_registered": machines.isRegistered,
      POST: machines.create,
      "POST accept": machines.accept,
      "POST allocate": machines.allocate,
      "POST release": machines.releaseMany,
    }),
    unsignedIsUnrecognised: true,
  },
  at(`machines/${ID}/`, {
    GET: machine.read,
    PUT: machine.update,
    DELETE: machine.remove,
    "GET power_parameters": machine.powerParameters,
    "GET query_power_state": machine.queryPowerState,
    "GET get_token": machine.getToken,
    "GET details": machine.details,
    "GET get_curtin_config": machine.curtinConfig,
    "POST commission": machine.startCommission,
    "POST deploy": machine.startDeploy,
    "POST release": machine.startRelease,
    "POST abort": machine.startAbort,
    "POST mark_broken": machine.broken,
    "POST mark_fixed": machine.fixed,
    "POST override_failed_testing": machine.overrideTesting,
    "POST lock": machine.lockMachine,
    "POST unlock": machine.unlockMachine,
    "POST power_on": machine.startPowerOn,
    "POST power_off": machine.startPowerOff,
    "POST test": machine.test,
    "POST rescue_mode": machine.rescue,
    "POST exit_rescue_mode": machine.exitRescue,
    "POST set_owner_data": machine.annotate,
    "POST set_workload_annotations": machine.annotate,
    "POST set_storage_layout": parts.setStorageLayout,
  }),
  at("nodes/", { GET: controllers.nodes }),
  at(`nodes/${ID}/results/`, { GET: parts.results }),
  at(`nodes/${ID}/blockdevices/`, { GET: parts.blockDevices }),
  at(`nodes/${ID}/blockdevices/${ID}/`, { GET: parts.blockDevice, "POST set_boot_disk": parts.setBootDisk }),
  at(`nodes/${ID}/blockdevices/${ID}/partitions/`, { GET: parts.partitions }),
  at(`nodes/${ID}/interfaces/`, { GET: parts.interfaces }),
  at(`nodes/${ID}/interfaces/${ID}/`, {
    GET: parts.readInterface,
    PUT: parts.updateInterface,
    "POST link_subnet": parts.link,
    "POST unlink_subnet": parts.unlink,
    "POST disconnect": parts.disconnect,
  }),
  at("subnets/", { GET: networks.subnets, POST: networks.createSubnet }),
  at("subnets/([^/]+(?:/\\d+)?)/", {
    GET: networks.readSubnet,
    DELETE: networks.deleteSubnet,
    "GET ip_addresses": networks.subnetAddresses,
    "GET statistics": networks.subnetStatistics,
  }),
  at("fabrics/", { GET: networks.fabrics }),
  at(`fabrics/${ID}/`, { GET: networks.readFabric }),
  at(`fabrics/${ID}/vlans/`, { GET: networks.fabricVlans }),
  at(`fabrics/${ID}/vlans/${ID}/`, { GET: networks.readVlan }),
  at(`vlans/${ID}/`, { GET: networks.readVlan }),
  at("spaces/", { GET: networks.spaces }),
  at("ipranges/", { GET: networks.ipRanges }),
  at("events/", { "GET query": events.query }),
  at("maas/", { "GET get_config": site.getConfig, "POST set_config": site.setConfig }),
  at("scripts/", { GET: site.scripts }),
  at("commissioning-scripts/", { GET: site.commissioningScripts }),
  at("boot-resources/", { GET: site.images }),
  at("rackcontrollers/", { GET: controllers.racks }),
  at("regioncontrollers/", { GET: controllers.regions }),
  at("zones/", { GET: site.zones }),
  at("resourcepools/", { GET: site.pools, POST: site.createPool }),
  at(`resourcepool/${ID}/`, { GET: site.readPool }),
  at("domains/", { GET: site.domains }),
  at("tags/", { GET: site.tags, POST: site.createTag }),
  at(`tags/${ID}/`, {
    GET: site.readTag,
    "GET machines": site.taggedMachines,
    "POST update_nodes": site.updateTagNodes,
  }),
  at("devices/", { GET: site.none }),
  at("static-routes/", { GET: site.none }),
  at("notifications/", { GET: site.notifications }),
  at("users/", { GET: account.users, "GET whoami": account.whoami, POST: account.createUser }),
  at("account/", {
    "POST create_authorisation_token": account.createToken,
    "GET list_authorisation_tokens": account.listTokens,
    "POST delete_authorisation_token": account.deleteToken,
  }),
  at("account/prefs/sshkeys/", { GET: account.sshKeys, POST: account.addSshKey }),
];
