/** One request that the hub accepts, for each writing route of the API. */
import { randomUUID } from "node:crypto";
import type { Route } from "../../hub/http/route.ts";
import { VERBS } from "../../hub/workflows/engine/recovery.ts";
import type { DriftDetails } from "../../shared/drift.ts";
import { MAAS_STATUS } from "../../shared/maas-status.ts";
import { siteBody } from "./api-harness.ts";
import { batchRequest } from "./batch-request.ts";
import { DEPLOY_PASSWORD } from "./deploy-password.ts";
import { newSecret } from "./webhook-receiver.ts";
import { ADMIN, type WriteWorld } from "./write-world.ts";

/** For a PATCH request, `every-write.test.ts` adds the object's version to the body. */
export interface WriteCase {
  readonly params?: Readonly<Record<string, string>>;
  readonly body?: object;
}
type Prepare = (world: WriteWorld) => WriteCase | Promise<WriteCase>;

const REASON = { reason: "a test" };
const LOGIN = { user: "root", pass: "calvin" };
const PROFILE = { description: "changed", batch_max_parallel: 3 };

const ofSite = async (world: WriteWorld, body?: object): Promise<WriteCase> => ({
  params: { id: (await world.site()).siteId },
  ...(body === undefined ? {} : { body }),
});
const ofSku = async (world: WriteWorld, body?: object): Promise<WriteCase> => ({
  params: { id: (await world.site()).skuId },
  ...(body === undefined ? {} : { body }),
});

const SITES: Readonly<Record<string, Prepare>> = {
  createMaasSite: (world) => ({ body: siteBody(world.name()) }),
  updateMaasSite: (world) => ofSite(world, { pxe_vlan_vid: 47, deploy_user: "ops" }),
  disableMaasSite: (world) => ofSite(world),
  writeMaasSiteCredentials: (world) => ofSite(world, { power: LOGIN, deploy_password: DEPLOY_PASSWORD }),
  probeMaasSite: async (world) => {
    const { siteId } = await world.site();
    await world.make(`/maas-sites/${siteId}/credentials`, { maas_token: "a:b:c" });
    return { params: { id: siteId } };
  },
  moveMaasSite: async (world) => {
    const { url, apiKey } = world.region;
    const body = { api_base_url: url.replace("127.0.0.1", "localhost"), maas_token: apiKey, ...REASON };
    return { params: { id: await world.siteOfRegion() }, body };
  },
  wakeMaasSiteWatcher: (world) => ofSite(world),
  createMaasSiteProfile: (world) => ofSite(world, { name: "gpu", hardware_sync_interval_seconds: 900 }),
  updateMaasSiteProfile: async (world) => ({ params: await world.profile(), body: PROFILE }),
  disableMaasSiteProfile: async (world) => ({ params: await world.profile() }),
  updateMaasSitePolicy: (world) => ofSite(world, PROFILE),
  createSku: (world) => ({ body: { id: world.name(), gpu_vendor: "nvidia", gpus_total: 4 } }),
  updateSku: (world) => ofSku(world, { description: "changed", status: "disabled" }),
  disableSku: (world) => ofSku(world),
  upsertRoceAssignments: (world) =>
    ofSite(world, { items: [{ hostname: "c07u41", interface: "rail0", ipv4_cidr: "172.30.0.1/31" }, { bad: "row" }] }),
  deleteRoceAssignment: async (world) => {
    const path = `/maas-sites/${(await world.site()).siteId}/roce-assignments`;
    await world.make(path, { items: [{ hostname: "c07u41", interface: "rail0", ipv4_cidr: "172.30.0.1/31" }] });
    const { items } = (await world.api.ask("GET", `${ADMIN}${path}`)).body;
    return { params: { id: items[0].site_id, assignment_id: items[0].id } };
  },
  createPowerCredentialOverride: (world) =>
    ofSite(world, { selector_type: "ipmi_ip", selector_value: world.host().ipmi_ip, ...LOGIN }),
  updatePowerCredentialOverride: async (world) => ({ params: await world.override(), body: LOGIN }),
  deletePowerCredentialOverride: async (world) => ({ params: await world.override() }),
};

/** Turns the name of a verb into camel case, as in the API's operation ids: from `restart_clean` to `restartClean`. */
const camelCase = (verb: string): string => verb.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const verbsOf = (what: string, failed: (world: WriteWorld) => Promise<string>): Readonly<Record<string, Prepare>> =>
  Object.fromEntries(
    VERBS.map((verb) => [
      `${camelCase(verb)}${what}`,
      async (world: WriteWorld) => ({ params: { id: await failed(world) }, body: REASON }),
    ]),
  );

const PEOPLE: Readonly<Record<string, Prepare>> = {
  grantApproval: async (world) => ({ params: { id: await world.approval() }, body: REASON }),
  refuseApproval: async (world) => ({ params: { id: await world.approval() }, body: REASON }),
  endSession: async (world) => ({ params: { id: await world.session() } }),
};

const ADOPTIONS: Readonly<Record<string, Prepare>> = {
  adoptMachines: async (world) => {
    const { siteId, skuId } = await world.site();
    return { params: { id: siteId }, body: { sku_id: skuId, system_ids: [await world.runningMachine(siteId)] } };
  },
  ...Object.fromEntries(
    ["createAdoptionCommands", "createAdoptionCsv", "createAdoptionInventory"].map((route) => [
      route,
      async (world: WriteWorld) => {
        const { siteId, skuId } = await world.site();
        const body = { sku_id: skuId, system_ids: [await world.runningMachine(siteId)] };
        await world.make(`/maas-sites/${siteId}/adoptions`, body);
        return { params: { id: siteId }, body: {} };
      },
    ]),
  ),
  bindNodeMachine: async (world) => {
    const { siteId, nodeId } = await world.manualNodeAtSite();
    return { params: { id: nodeId }, body: { maas_system_id: await world.runningMachine(siteId), plan: true } };
  },
  unbindNodeMachine: async (world) => ({ params: { id: await world.boundNode() }, body: REASON }),
};

const WORKFLOWS: Readonly<Record<string, Prepare>> = {
  createOnboarding: async (world) => ({ body: { ...(await world.onboardingSelectors()), ...world.host() } }),
  createOnboardingBatch: async (world) => ({
    body: { ...(await world.onboardingSelectors()), nodes: [world.host(), world.host()] },
  }),
  ...verbsOf("Onboarding", (world) => world.failedOnboarding()),
  cancelOnboardingBatch: async (world) => ({ params: { id: (await world.batch()).batchId }, body: REASON }),
  recoverOnboardingBatch: async (world) => ({ params: { id: await world.failedBatch() }, body: REASON }),
  pauseOnboardingBatch: async (world) => ({ params: { id: (await world.batch()).batchId }, body: REASON }),
  resumeOnboardingBatch: async (world) => {
    const { batchId: id } = await world.batch();
    await world.make(`/onboarding-batches/${id}/pause`, REASON);
    return { params: { id }, body: REASON };
  },
  createDecommissionBatch: async (world) => ({ body: await world.drainBatchRequest() }),
  cancelDecommissionBatch: async (world) => ({ params: { id: (await world.drainBatch()).batchId }, body: REASON }),
  recoverDecommissionBatch: async (world) => ({ params: { id: await world.failedDrainBatch() }, body: REASON }),
  pauseDecommissionBatch: async (world) => ({ params: { id: (await world.drainBatch()).batchId }, body: REASON }),
  resumeDecommissionBatch: async (world) => {
    const { batchId: id } = await world.drainBatch();
    await world.make(`/decommission-batches/${id}/pause`, REASON);
    return { params: { id }, body: REASON };
  },
  drainNode: async (world) => ({ params: { id: await world.node() }, body: REASON }),
  removeNode: async (world) => ({ params: { id: await world.retiredNode() }, body: REASON }),
  releaseNode: async (world) => ({ params: { id: await world.onboardedRetiredNode() }, body: REASON }),
  decommissionNode: async (world) => ({
    params: { id: await world.node() },
    body: { ...REASON, mode: "soft_reset" },
  }),
  cleanNodeStorage: async (world) => ({
    params: { id: await world.schedulableNode() },
    body: { ...REASON, scope: "local" },
  }),
  ...verbsOf("Decommission", (world) => world.failedDrain()),
  forceDecommission: async (world) => ({ params: { id: await world.drain() }, body: REASON }),
};

const CHECK = { type: "node.heartbeat_check", input: { nonce: "n" } };

const NODES: Readonly<Record<string, Prepare>> = {
  createNode: async (world) => ({ body: await world.manualNodeRequest() }),
  updateNode: async (world) => ({ params: { id: await world.node() }, body: { location: { rack: "r1", unit: 4 } } }),
  applyToNodes: async (world) => {
    const id = await world.node();
    const { site_id } = (await world.api.ask("GET", `${ADMIN}/nodes/${id}`)).body;
    return { body: { site_id, action: { verb: "cordon", ...REASON }, node_ids: [id] } };
  },
  setNodeLocations: async (world) => {
    const { site_id, hostname } = (await world.api.ask("GET", `${ADMIN}/nodes/${await world.node()}`)).body;
    return { body: { site_id, items: [{ hostname, rack: "r1", unit: 4 }, { hostname: "nobody" }] } };
  },
  beginExternalAttempt: async (world) => ({ body: await world.externalHost() }),
  adoptExternalHost: async (world) => ({ body: { ...(await world.externalHost()), facts: { host: "10.0.0.9" } } }),
  reportExternalProgress: async (world) => ({ params: { id: await world.attempt() }, body: { step: "imaging" } }),
  completeExternalAttempt: async (world) => ({ params: { id: await world.attempt() }, body: {} }),
  failExternalAttempt: async (world) => ({
    params: { id: await world.attempt() },
    body: { code: "no_image", message: "there is no image" },
  }),
  abandonExternalAttempt: async (world) => ({ params: { id: await world.attempt() }, body: REASON }),
  reconcileExternalHosts: async (world) => {
    const { site_id, hostname, provisioner } = await world.externalHost();
    return { body: { site_id, provisioner, hosts: [{ hostname, state: "provisioned" }] } };
  },
  createBootstrapCommand: async (world) => ({ params: { id: await world.manualNode() }, body: {} }),
  reEnrollNode: async (world) => ({ params: { id: await world.node() }, body: REASON }),
  createNodeTask: async (world) => ({ params: { id: await world.node() }, body: CHECK }),
  cancelTask: async (world) => ({ params: { id: (await world.make(`/nodes/${await world.node()}/tasks`, CHECK)).id } }),
  activateNode: async (world) => ({ params: { id: await world.retiredNode() }, body: REASON }),
  revokeNodeCertificates: async (world) => ({ params: { id: await world.node() }, body: REASON }),
  quarantineNode: async (world) => ({ params: { id: await world.node() }, body: REASON }),
  liftNodeQuarantine: async (world) => {
    const { node_id: id } = await world.make(`/nodes/${await world.node()}/quarantine`, REASON);
    return { params: { id }, body: REASON };
  },
  cordonNode: async (world) => ({ params: { id: await world.node() }, body: REASON }),
  uncordonNode: async (world) => {
    const { node_id: id } = await world.make(`/nodes/${await world.node()}/cordon`, REASON);
    return { params: { id }, body: REASON };
  },
  removeNodeHealthOverride: async (world) => {
    const id = await world.node();
    await world.query(
      "insert into node_health_overrides (node_id, source, reason, set_by) values ($1, 'disk-erase', 'x', 'operator:ann')",
      [id],
    );
    return { params: { id }, body: { source: "disk-erase", ...REASON } };
  },
  setNodeHealthOverride: async (world) => ({
    params: { id: await world.node() },
    body: { template: "Degraded", message: "a fan is loud", ...REASON },
  }),
  takeNodeBaseline: async (world) => ({ params: { id: await world.node() }, body: REASON }),
  clearNodeReports: async (world) => ({ params: { id: await world.node() }, body: REASON }),
  postReadinessSignal: async (world) => {
    const said = { status: "True", reason: "Checked", message: "", observed_at: new Date().toISOString() };
    const conditions = [{ type: "site.burn_in", ...said }];
    return { params: { id: await world.node() }, body: { signal_id: randomUUID(), generation: 0, conditions } };
  },
  postSignals: async (world) => {
    const said = { status: "True", reason: "Checked", message: "", observed_at: new Date().toISOString() };
    const conditions = [{ type: "site.burn_in", ...said }];
    return { body: { signal_id: randomUUID(), node: { id: await world.node() }, conditions } };
  },
  issueReportToken: async (world) => ({ params: { id: await world.node() } }),
};

const ALLOCATIONS: Readonly<Record<string, Prepare>> = {
  createAllocation: async (world) => ({ body: await world.allocationRequest() }),
  createAllocationBatch: async (world) => ({ body: await batchRequest(world) }),
  releaseAllocation: async (world) => ({ params: { id: await world.allocation() }, body: REASON }),
  forceReleaseAllocation: async (world) => ({ params: { id: await world.allocation() }, body: REASON }),
  validateSanitizationRecord: async (world) => ({
    params: { id: await world.sanitizationRecord() },
    body: { ...REASON, result: "accepted", title: "security officer" },
  }),
  updateInstance: async (world) => ({ params: { id: await world.allocation() }, body: { labels: { order: "4712" } } }),
  powerOnInstance: async (world) => ({ params: { id: await world.allocation() }, body: REASON }),
  powerOffInstance: async (world) => ({ params: { id: await world.allocation() }, body: REASON }),
  powerCycleInstance: async (world) => ({ params: { id: await world.allocation() }, body: REASON }),
  rebootInstance: async (world) => ({ params: { id: await world.allocation() }, body: REASON }),
  reinstallInstance: async (world) => ({
    params: { id: await world.activeAllocation() },
    body: { ...REASON, acknowledge_data_loss: true },
  }),
  powerNode: async (world) => ({ params: { id: await world.node() }, body: { ...REASON, verb: "cycle" } }),
  grantAllocation: async (world) => ({ params: { id: await world.failedAllocation() }, body: REASON }),
};

const DRIFT: DriftDetails = {
  rule: "powered_off",
  severity: "high",
  action: "none",
  maas_status: "Deployed",
  maas_status_code: MAAS_STATUS.deployed,
  expected: "on",
  message: "Its machine is off",
  detected_at: "2026-01-01T00:00:00.000Z",
  held_back: null,
};

const SENDERS: Readonly<Record<string, Prepare>> = {
  createSignalSender: async (world) => ({ body: { name: world.name(), site_ids: [(await world.site()).siteId] } }),
  rotateSignalSender: async (world) => ({ params: { id: await world.sender() }, body: {} }),
  revokeSignalSender: async (world) => ({ params: { id: await world.sender() }, body: REASON }),
};

const SSH_KEYS: Readonly<Record<string, Prepare>> = {
  createSshKey: async (world) => ({ body: await world.sshKeyRequest() }),
  updateSshKey: async (world) => ({ params: { id: await world.sshKey() }, body: { name: world.name() } }),
  deleteSshKey: async (world) => ({ params: { id: await world.sshKey() } }),
  createSshKeyGroup: async (world) => ({ body: await world.sshKeyGroupRequest() }),
  updateSshKeyGroup: async (world) => ({ params: { id: await world.sshKeyGroup() }, body: { description: "changed" } }),
  deleteSshKeyGroup: async (world) => ({ params: { id: await world.sshKeyGroup() } }),
};

const REST: Readonly<Record<string, Prepare>> = {
  createToken: async (world) => ({ body: await world.tokenRequest() }),
  rotateToken: async (world) => ({ params: { id: await world.token() }, body: { expires_in_days: 1 } }),
  revokeToken: async (world) => ({ params: { id: await world.token() }, body: REASON }),
  startAuthorityRotation: async (world) => {
    await world.rotation(false);
    return { body: REASON };
  },
  finishAuthorityRotation: async (world) => {
    await world.rotation(true);
    return { body: { ...REASON, force: true } };
  },
  abortAuthorityRotation: async (world) => {
    await world.rotation(true);
    return { body: REASON };
  },
  resolveDrift: async (world) => {
    const drift = { status: MAAS_STATUS.deployed, driftDetected: true, driftDetails: DRIFT };
    return { params: { node_id: await world.node(drift) }, body: { action: "acknowledge", ...REASON } };
  },
  runReconciliation: async (world) => ({ body: { site_id: (await world.site()).siteId } }),
  resetBreaker: async (world) => {
    const { siteId } = await world.site();
    await world.query(
      `insert into reconciler_breakers (site_id, kind, tripped_at, would_move, move_limit, in_service, node_ids)
        values ($1, 'quarantine', now(), 9, 5, 10, '{}')`,
      [siteId],
    );
    return { params: { site_id: siteId }, body: REASON };
  },
  createWebhook: () => ({ body: { url: "https://receiver.example/hook", types: ["node.*"], secret: newSecret() } }),
  updateWebhook: async (world) => ({ params: { id: await world.webhook() }, body: { description: "changed" } }),
  deleteWebhook: async (world) => ({ params: { id: await world.webhook() } }),
  rotateWebhookSecret: async (world) => ({ params: { id: await world.webhook() }, body: { secret: newSecret() } }),
  testWebhook: async (world) => ({ params: { id: await world.webhook() } }),
  replayWebhook: async (world) => ({ params: { id: await world.webhook() }, body: { dead: true } }),
  replayWebhookDelivery: async (world) => {
    const id = await world.webhook();
    const delivery = `${41_000 + world.number()}`;
    await world.query(
      "insert into webhook_deliveries (id, webhook_id, event_seq, state, attempts) values ($2, $1, 1, 'dead', 5)",
      [id, delivery],
    );
    return { params: { id, delivery_id: delivery } };
  },
};

const ISSUE = { category: "Hardware", summary: "a fan is loud" };
const ofRepair =
  (state: Parameters<WriteWorld["repair"]>[0], body: object = {}): Prepare =>
  async (world) => ({ params: { id: await world.repair(state) }, body: { ...REASON, ...body } });

const REPAIRS: Readonly<Record<string, Prepare>> = {
  openRepair: async (world) => ({
    body: { ...REASON, node_id: await world.node(), machine_health_issue: ISSUE, request: true },
  }),
  openOnlineRepair: async (world) => {
    const id = await world.allocation();
    await world.query("update allocations set status = 'active' where id = $1", [id]);
    const acknowledgements = {
      accept_data_corruption_risk: true,
      accept_repair_team_access: true,
      accept_instance_deletion_risk: true,
    };
    return { body: { ...REASON, allocation_id: id, machine_health_issue: ISSUE, acknowledgements } };
  },
  requestRepair: ofRepair("reported"),
  withdrawRepairRequest: ofRepair("requested"),
  claimRepair: ofRepair("requested", { hours: 2 }),
  reportRepair: ofRepair("claimed", { outcome: "failed" }),
  escalateRepair: ofRepair("claimed"),
  validateRepair: ofRepair("repaired", { result: "passed" }),
  closeRepair: async (world) => ({ params: { id: await world.checkedRepair() }, body: REASON }),
};

export const WRITE_CASES: Readonly<Record<string, Prepare>> = {
  ...REPAIRS,
  ...SITES,
  ...PEOPLE,
  ...ADOPTIONS,
  ...WORKFLOWS,
  ...NODES,
  ...ALLOCATIONS,
  ...SENDERS,
  ...SSH_KEYS,
  ...REST,
};

export function writeCaseOf({ operationId, method, path }: Pick<Route, "operationId" | "method" | "path">): Prepare {
  const prepare = WRITE_CASES[operationId];
  if (prepare !== undefined) return prepare;
  throw new Error(
    `No test asks ${operationId} (${method} ${path}). Add its line to a list of test/support/write-cases.ts: the parameters of its path, its body, and what must be there before.`,
  );
}
