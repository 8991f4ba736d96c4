/** The steps that read the fleet: what there is, how well it is, and where it stands. */
import { Site } from "../../../../shared/api/sites.ts";
import { alertsOf, isHealthy, readFleet } from "../fleet.ts";
import { readStep, type Step } from "../step.ts";

const isReserved = (node: { allocation: object | null; cordon_owner: string | null }): boolean =>
  node.allocation !== null || node.cordon_owner !== null;

const governance = readStep("query_governance_metrics", async (hub) => {
  const fleet = await readFleet(hub);
  const of = (nodes: typeof fleet) => ({
    nodes: nodes.length,
    gpus: nodes.reduce((sum, { inventory }) => sum + (inventory?.gpus.length ?? 0), 0),
  });
  const metrics = {
    delivered: of(fleet),
    healthy: of(fleet.filter(isHealthy)),
    reserved: of(fleet.filter(isReserved)),
    active: of(fleet.filter(({ allocation }) => allocation !== null)),
  };
  return { machine_count: fleet.length, metrics };
});

const inventory = readStep("query_fleet_inventory", async (hub) => {
  const sites = new Map((await hub.all(Site, "/api/v1/admin/maas-sites")).map((site) => [site.id, site]));
  const nodes = (await readFleet(hub)).map((node) => ({
    node_id: node.id,
    health_state: isHealthy(node) ? "Healthy" : "Unhealthy",
    instance_id: node.allocation?.id ?? null,
    project_id: node.allocation?.tenant ?? null,
    in_use: node.allocation !== null,
    created_at: node.created_at,
    hardware_type: node.sku_id,
    gpu_count: node.inventory?.gpus.length ?? 0,
    account_id: node.site_id === null ? null : sites.get(node.site_id)?.name,
    region: node.region_code,
  }));
  return { nodes_checked: nodes.length, nodes };
});

const PAUSE_SECONDS = 5;
/** The index of what was ordered is the list of onboardings, read twice: an order keeps its id, and names its node once the host has enrolled. */
const discovery = readStep("query_resource_discovery", async (hub) => {
  const wanted = async () => (await hub.onboardings()).filter(({ status }) => status !== "cancelled");
  const first = await wanted();
  await new Promise((done) => setTimeout(done, PAUSE_SECONDS * 1_000));
  const second = new Map((await wanted()).map((one) => [one.onboarding_id, one]));
  const lost = first.filter(({ onboarding_id: id }) => !second.has(id));
  const resources = [...second.values()].map(({ onboarding_id: id, node_id: node }) => ({
    resource_id: id,
    delivery_reason: "onboarding",
    discovered: node !== null,
  }));
  return {
    polls: 2,
    poll_interval_seconds: PAUSE_SECONDS,
    unstable_identifiers: lost.map(({ onboarding_id: id }) => id),
    resources_checked: resources.length,
    resources,
  };
});

const ingestion = readStep("verify_ingestion", async (hub) => {
  const nodes = new Map((await readFleet(hub)).map((node) => [node.id as string, node]));
  const wanted = (await hub.onboardings()).filter(({ status }) => status !== "cancelled");
  const found = wanted.filter(({ node_id: id }) => id !== null && nodes.has(id));
  const ofOrders = new Set(found.map(({ node_id: id }) => id));
  const machines = [...nodes.values()].map((node) => ({
    machine_id: node.id,
    status: node.allocation !== null ? "InUse" : node.status === "active" ? "Ready" : "Error",
    health: isHealthy(node) ? "healthy" : "unhealthy",
    chassis_serial: null,
  }));
  return {
    expected_count: wanted.length,
    ingested_count: nodes.size,
    matched_count: found.length,
    missing: wanted.filter((one) => !found.includes(one)).map(({ hostname }) => hostname),
    extra: machines.filter(({ machine_id: id }) => !ofOrders.has(id)).map(({ machine_id: id }) => id),
    machines,
  };
});

const health = readStep("query_host_health", async (hub) => {
  const hosts = (await readFleet(hub)).map((node) => {
    const seen = node.last_agent_contact_at;
    const alerts = alertsOf(node);
    return {
      host_id: node.id,
      health_present: seen !== null && node.conditions.length > 0,
      healthy: alerts.length === 0,
      observed_age_seconds: seen === null ? null : Math.round((Date.now() - Date.parse(seen)) / 1_000),
      probe_ids: node.conditions.map(({ type }) => type),
      alerts,
    };
  });
  return { hosts_checked: hosts.length, hosts };
});

const aggregation = readStep("query_health_aggregation", async (hub) => {
  const bySku = Map.groupBy(await readFleet(hub), ({ sku_id: sku }) => sku);
  const groups = [...bySku].map(([sku, nodes]) => {
    const unhealthy = nodes.filter((node) => !isHealthy(node));
    return {
      group_id: sku,
      name: sku,
      total: nodes.length,
      healthy: nodes.length - unhealthy.length,
      unhealthy: unhealthy.length,
      status: unhealthy.length === 0 ? "Healthy" : "Degraded",
      unhealthy_hosts: unhealthy.map(({ hostname }) => hostname),
    };
  });
  return { aggregation_level: "sku", groups };
});

const topology = readStep("query_topology", async (hub) => {
  const hosts = (await readFleet(hub)).map(({ id, location }) => ({ host_id: id, failure_domain: location.rack }));
  return { hosts_checked: hosts.length, hosts };
});

const addresses = readStep("query_stable_ips", async (hub) => {
  const hosts = (await readFleet(hub)).map(({ id, gpus_total: gpus, host }) => ({
    host_id: id,
    hw_sku_device_type: gpus > 0 ? "gpu" : "cpu",
    primary_ip_addresses: host === null ? [] : [host],
  }));
  return { hosts_checked: hosts.length, hosts };
});

export const FLEET_STEPS: readonly Step[] = [
  ingestion,
  governance,
  inventory,
  discovery,
  health,
  aggregation,
  topology,
  addresses,
];
