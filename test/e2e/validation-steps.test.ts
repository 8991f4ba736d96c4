/**
 * The steps of our provider for NVIDIA's neutral suites, in their order, against a hub, a simulated MAAS region and agents as real processes. The
 * expectations are what the suites' checks ask of each step; `npm run test:validation` runs the checks themselves.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NodeSummary } from "../../shared/api/nodes.ts";
import { ownLinuxObstacle } from "../fakes/maas/host/own-linux.ts";
import { SSH_KEY } from "../support/allocatable-node.ts";
import { newHubFolder } from "../support/hub-state.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts, ensureSku, seedSite } from "../support/seed-site.ts";
import { LONG_WAIT_MS, until } from "../support/until.ts";
import type { Step, StepResult } from "../validation/provider/step.ts";
import { SUITES } from "../validation/provider/steps.ts";

const SKU = { id: "cpu.256c", description: "256 CPUs", gpu_vendor: "none", gpus_total: 0 } as const;
const HOSTS = demoHosts(2);
/** The tenant's host is in the first rack, and the other host in the second, which leaves. */
const RACKS = ["rack 7", "rack 8"];
const ID = expect.any(String);
const RUNNING = { success: true, state: "running", instance_id: ID };
const SKIPPED = { success: true, skipped: true, skip_reason: ID };
const NONE: readonly unknown[] = [];

/** What the checks of the suites want of each step. No simulated host has an SSH server, so `ssh_ready` is false here. */
const WANTED: Readonly<Record<string, object>> = {
  launch_instance: { ...RUNNING, vpc_id: ID, public_ip: ID, key_file: ID },
  list_instances: { success: true, found_target: true, instances: [{ instance_id: ID, state: "running", vpc_id: ID }] },
  verify_tags: { success: true, tags: { Name: ID, CreatedBy: ID } },
  topology_placement: SKIPPED,
  serial_console: SKIPPED,
  host_status_log: SKIPPED,
  verify_image: { ...RUNNING, image_id: ID, image_name: ID, instance_state: "running" },
  stop_instance: { success: true, stop_initiated: true, state: "stopped" },
  start_instance: { ...RUNNING, start_initiated: true, ssh_ready: false },
  reboot_instance: { ...RUNNING, reboot_initiated: true, reboot_confirmed: true },
  power_cycle_instance: { ...RUNNING, power_cycle_initiated: true, power_was_off: true },
  reinstall_instance: { ...RUNNING, reinstall_method: ID },
  describe_instance: { ...RUNNING, public_ip: ID },
  verify_ingestion: { success: true, expected_count: 2, matched_count: 2, missing: NONE },
  query_governance_metrics: {
    success: true,
    metrics: { delivered: { nodes: 2 }, healthy: { nodes: 2 }, reserved: { nodes: 1 }, active: { nodes: 1 } },
  },
  query_fleet_inventory: { success: true, nodes_checked: 2 },
  query_resource_discovery: { success: true, polls: 2, unstable_identifiers: NONE, resources_checked: 2 },
  query_host_health: {
    success: true,
    hosts: [1, 2].map(() => ({ health_present: true, healthy: true, alerts: NONE })),
  },
  query_health_aggregation: { success: true, groups: [{ total: 2, healthy: 2, unhealthy: 0, status: "Healthy" }] },
  query_topology: { success: true, hosts: RACKS.map((rack) => ({ failure_domain: rack })) },
  query_stable_ips: { success: true, hosts: [1, 2].map(() => ({ primary_ip_addresses: [ID] })) },
  query_sanitization: { success: true, machines_checked: 2 },
  return_node_maintenance: { success: true, operation: { accepted: true, machine_id: ID } },
  request_host_replacement: { success: true, operation: { node_removed_from_pool: true, machine_id: ID } },
  return_rack_maintenance: { success: true, operation: { accepted: true, rack_id: RACKS[1] } },
  query_maintenance_events: { success: true, events_queryable: true, events: [{ machine_id: ID, message: ID }] },
  query_repair_history: { success: true, history_queryable: true, records: [{ machine_id: ID }] },
  query_retirement_notices: { success: true, notices_queryable: true, notices: [{ machine_id: ID }] },
  query_planned_notifications: { success: true, notification_channel_observable: true },
  query_failure_notifications: { success: true, notification_channel_observable: true },
  query_serial_numbers: SKIPPED,
  query_switch_firmware: SKIPPED,
  query_bmc_kernel_logs: SKIPPED,
  query_node_health_agents: SKIPPED,
  teardown: { success: true, resources_deleted: [ID] },
  verify_teardown: { success: true, checks: { instance_terminated: true, host_cleaned: true } },
  check_api: { success: true, account_id: ID },
  create_access_key: { success: true, access_key_id: ID, username: ID },
  test_access_key: { success: true, authenticated: true },
  disable_access_key: { success: true, status: "Inactive" },
  verify_key_rejected: { success: true, rejected: true },
  s3_object_lifecycle: SKIPPED,
};

const byName = (a: NodeSummary, b: NodeSummary): number => a.hostname.localeCompare(b.hostname);
const obstacle = await ownLinuxObstacle();
if (obstacle !== null) process.stderr.write(`SKIPPED: the steps of NVIDIA's neutral suites: ${obstacle}\n`);

describe.skipIf(obstacle !== null)("our provider for NVIDIA's neutral suites", () => {
  const stateDir = newHubFolder("muster-validation-steps-");
  const results = new Map<string, StepResult>();
  const settings: Record<string, string> = { rack_id: RACKS[1] ?? "" };
  let rig: Rig;

  beforeAll(async () => {
    const [withTenant = "", ...others] = HOSTS.map(({ hostname }) => hostname);
    const withoutGpus = [withTenant, ...others];
    rig = await startRig({ stateDir, machines: 2, speed: 30, ownLinux: [withTenant], withoutGpus });
    const site = await seedSite(rig.api, rig.maas, HOSTS);
    await ensureSku(rig.api, SKU);
    const selectors = { site_id: site.siteId, profile_id: site.profileId, sku_id: SKU.id };
    for (const host of HOSTS) await rig.api.onboard({ ...selectors, ...host });
    const nodes = await until(
      "both hosts in service",
      async () => {
        const now = await rig.api.nodes();
        return now.length === 2 && now.every(({ schedulable }) => schedulable) ? now.toSorted(byName) : undefined;
      },
      { timeoutMs: LONG_WAIT_MS, everyMs: 300 },
    );
    for (const [unit, { id }] of nodes.entries())
      await rig.api.patch(NodeSummary, `/api/v1/admin/nodes/${id}`, { location: { rack: RACKS[unit], unit: 1 } });
    const other = nodes.find(({ hostname }) => hostname !== HOSTS[0]?.hostname);
    Object.assign(settings, { machine_id: other?.id, replaced_machine_id: other?.id });
    const key = join(stateDir, "tenant-key");
    writeFileSync(`${key}.pub`, SSH_KEY);
    Object.assign(process.env, { MUSTER_VALIDATION_HOST: HOSTS[0]?.hostname, MUSTER_VALIDATION_KEY: key });
  });
  afterAll(async () => {
    for (const name of ["MUSTER_VALIDATION_HOST", "MUSTER_VALIDATION_KEY"]) Reflect.deleteProperty(process.env, name);
    await rig?.stop();
    rmSync(stateDir, { recursive: true, force: true });
  });

  /** Fills the suite's template of an argument, as the suite does. */
  const fill = (template: string): string =>
    template.replace(/\{\{([\w.]+)\}\}/g, (_, path: string) => {
      const [first = "", step = "", field = ""] = path.split(".");
      return String(first === "steps" ? results.get(step)?.[field] : settings[first]);
    });
  async function runStep(step: Step): Promise<void> {
    const args = Object.fromEntries(Object.entries(step.args).map(([name, template]) => [name, fill(template)]));
    const result = await step.run(rig.api, args);
    results.set(step.name, result);
    expect(result, JSON.stringify(result)).toMatchObject(
      WANTED[step.name] ?? { success: "a step without expectation" },
    );
  }

  for (const [suite, steps] of Object.entries(SUITES))
    describe(suite, () => {
      for (const step of steps) it(step.name, () => runStep(step));
    });

  it("keeps the instance's id from its launch over every change", () => {
    const ids = ["stop", "start", "reboot", "power_cycle", "reinstall"].map(
      (verb) => results.get(`${verb}_instance`)?.["instance_id"],
    );
    expect(new Set(ids)).toEqual(new Set([results.get("launch_instance")?.["instance_id"]]));
  });

  it("shows how the machine of the instance was used, and tells of failures and plans", () => {
    const { machines } = results.get("query_sanitization") as { machines?: { served_tenant: boolean }[] };
    expect(machines?.filter(({ served_tenant }) => served_tenant)).toHaveLength(1);
    for (const channel of ["query_planned_notifications", "query_failure_notifications"])
      expect(results.get(channel)?.["notifications"], channel).not.toEqual([]);
  });
});
