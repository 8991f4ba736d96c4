import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { readBatch } from "../../../hub/db/queries/batches.ts";
import { listOnboardings, readOnboarding } from "../../../hub/db/queries/onboardings.ts";
import { EVERYWHERE } from "../../../hub/db/queries/reach.ts";
import { readWorkflow } from "../../../hub/db/queries/workflows.ts";
import { domainEvents, nodes, workflowEvents, workflowSubjects, workflows } from "../../../hub/db/schema/index.ts";
import type { Watcher } from "../../../hub/watcher/watcher.ts";
import { applyVerb } from "../../../hub/workflows/engine/apply-verb.ts";
import type { Verb } from "../../../hub/workflows/engine/recovery.ts";
import type { WorkflowRunner } from "../../../hub/workflows/engine/runner.ts";
import { startOnboarding, startOnboardingBatch } from "../../../hub/workflows/onboarding/start-onboarding.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import type { OnboardingDetail } from "../../../shared/api/onboardings.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import type { WorkflowStatus } from "../../../shared/workflow-status.ts";
import type { Plan } from "../../fakes/maas/state/model.ts";
import { bmcAddress, SITE_BMC_PASSWORD } from "../../fakes/maas/state/site.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { startAgents, startRigWatcher, startRunner } from "../../support/rig-hub.ts";
import { until } from "../../support/until.ts";

/** Only the hosts' agents and the MAAS region are simulated. PostgreSQL, the workflow runner and the watcher are real. */
let rig: OnboardingRig;
let watcher: Watcher;
let runners: WorkflowRunner[] = [];
let boxes = 0;
const alive = new Set<WorkflowId>();
let agents: ReturnType<typeof startAgents>;

beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 40, speed: 2000 });
  watcher = startRigWatcher(rig);
  agents = startAgents(rig, alive);
});
afterEach(async () => {
  alive.clear();
  await Promise.all(runners.map((runner) => runner.close()));
  runners = [];
});
afterAll(async () => {
  await agents?.close();
  await watcher?.close();
  await rig?.close();
});

const db = () => rig.services.db;
function hub(): WorkflowRunner {
  const runner = startRunner(rig);
  runners.push(runner);
  return runner;
}
async function onboard(profileId = rig.profileId) {
  const started = await rig.start(++boxes, profileId);
  alive.add(started.id);
  return started;
}
const ended = (id: WorkflowId, ...statuses: WorkflowStatus[]): Promise<OnboardingDetail> =>
  until(`the onboarding to be ${statuses.join(" or ")}`, async () => {
    const row = await readOnboarding(db(), id);
    return row !== null && statuses.includes(row.status) ? row : undefined;
  });
const verb = (id: WorkflowId, which: Verb) =>
  rig.services.inTx((tx) =>
    applyVerb(tx, workflowsOf(rig.services), {
      workflowId: id,
      verb: which,
      actor: "ann",
      role: "admin",
      reason: "test",
    }),
  );
const machineOf = async (id: WorkflowId) =>
  until("the machine to be known", async () => {
    const systemId = (await readOnboarding(db(), id))?.maas_system_id;
    return typeof systemId === "string" ? rig.maas.sim.region.findMachine(systemId) : undefined;
  });
/**
 * Plans how the commissioning and the deploys of a host end in the simulated MAAS region. A test calls `plan` before a hub runs, because the hub may
 * commission the host at once.
 */
const plan = (hostname: string, what: Plan): void => {
  rig.maas.sim.region.state.plans[hostname] = what;
};
const counters = (systemId: string) => rig.maas.sim.region.state.counters[systemId];

describe("an onboarding", () => {
  it("makes the node active, with its events, and holds no subject any more", async () => {
    hub();
    const { id, nodeId } = await onboard();
    const end = await ended(id, "completed");
    expect(end).toMatchObject({ current_stage: "check_hardware", failure_class: null, waiting_for: null });
    const [node] = await db().select().from(nodes).where(eq(nodes.id, nodeId));
    expect(node).toMatchObject({ status: "active", generation: 1 });
    const events = await db()
      .select()
      .from(domainEvents)
      .where(eq(domainEvents.subject, `onboardings/${id}`))
      .orderBy(domainEvents.seq);
    const [begin, ...rest] = events.map((event) => event.type);
    expect([begin, rest.at(-1)]).toEqual(["node.onboarding.started", "node.onboarding.completed"]);
    expect(new Set(rest.slice(0, -1))).toEqual(new Set(["operation.progressed"]));
    const told = new Set(events.map(({ data }) => (data as { stage?: string }).stage));
    for (const stage of ["create_or_find_in_maas", "wait_for_ready", "deploy_via_maas", "wait_for_agent_enrollment"])
      expect(told).toContain(stage);
    expect(await db().select().from(workflowSubjects).where(eq(workflowSubjects.workflowId, id))).toEqual([]);
  });

  it("stores no secret in any row", async () => {
    hub();
    const { id } = await onboard();
    await ended(id, "completed");
    const rows = JSON.stringify([
      await db().select().from(workflows),
      (await db().select().from(workflowEvents)).map(({ id: _, ...event }) => event),
    ]);
    const token = rig.maas.apiKey.split(":")[2] ?? "";
    for (const secret of [SITE_BMC_PASSWORD, token, "correct horse"]) expect(rows).not.toContain(secret);
  });

  it("deploys again with a new token and generation after a datasource failure", async () => {
    const { id, nodeId, hostname } = await onboard();
    plan(hostname, { commission: [], deploy: ["datasource_failure"] });
    hub();
    const machine = await machineOf(id);
    const end = await ended(id, "completed");
    expect(end.events.map((event) => `${event.stage} ${event.status}`)).toContain(
      "recover_for_datasource_retry returned",
    );
    expect(counters(machine.systemId)).toMatchObject({ commission: 1, deploy: 2, release: 1 });
    const [node] = await db().select().from(nodes).where(eq(nodes.id, nodeId));
    expect(node?.generation).toBe(2);
  });

  it("gives up after the retries that the profile allows, and releases the machine", async () => {
    const { id, hostname } = await onboard();
    plan(hostname, {
      commission: [],
      deploy: ["datasource_failure", "datasource_failure"],
    });
    hub();
    const machine = await machineOf(id);
    const end = await ended(id, "failed_manual_intervention");
    expect(end).toMatchObject({ failure_class: "deploy_cloud_init_failure", error_code: "datasource_retry_exhausted" });
    expect(machine.status).toBe(4);
    expect(counters(machine.systemId)).toMatchObject({ deploy: 2, release: 2 });
  });

  it("releases a failed install to Ready, says why, and completes after a rerun", async () => {
    const { id, hostname } = await onboard();
    plan(hostname, { commission: [], deploy: ["install_failure"] });
    hub();
    const machine = await machineOf(id);
    const end = await ended(id, "failed_retryable");
    expect(end).toMatchObject({ error_code: "deploy_failed", current_stage: "classify_deploy_failure" });
    expect(end.error_message).toContain("Installation failed");
    expect(machine).toMatchObject({ status: 4, owner: null });
    await verb(id, "rerun");
    await ended(id, "completed");
    expect(counters(machine.systemId)).toMatchObject({ commission: 1, deploy: 2, release: 1 });
  });

  it("stops after a failed commissioning, and completes after a resume", async () => {
    const { id, hostname } = await onboard();
    plan(hostname, { commission: ["fail"], deploy: [] });
    hub();
    const machine = await machineOf(id);
    const end = await ended(id, "failed_manual_intervention");
    expect(end).toMatchObject({ failure_class: "pxe_discovery_failure", error_code: "commissioning_failed" });
    await verb(id, "resume");
    await ended(id, "completed");
    expect(counters(machine.systemId)).toMatchObject({ commission: 2, deploy: 1 });
  });

  it("survives 503 answers and answers that are lost after MAAS acted", async () => {
    const faults = rig.maas.sim.faults;
    faults.add({ match: { op: "commission" }, kind: "status", code: 503, times: 1 });
    faults.add({ match: { op: "deploy" }, kind: "truncated_body", times: 1 });
    faults.add({ match: { method: "GET", path: "machines/" }, kind: "conflict_html_retry_after", times: 1 });
    hub();
    const { id } = await onboard();
    const end = await ended(id, "completed", "failed_retryable", "failed_manual_intervention");
    expect(end.status, end.error_message ?? "").toBe("completed");
    expect(counters(end.maas_system_id ?? "")).toMatchObject({ commission: 1, deploy: 1, release: 0 });
  });

  it("fails as machine_vanished when somebody deleted the machine", async () => {
    const { id } = await onboard();
    alive.delete(id);
    hub();
    const machine = await machineOf(id);
    rig.maas.sim.region.state.machines = rig.maas.sim.region.state.machines.filter((one) => one !== machine);
    const end = await ended(id, "failed_manual_intervention");
    expect(end).toMatchObject({ failure_class: "state_ambiguity", error_code: "machine_vanished" });
  });

  it("gives the machine back when it is cancelled during a deploy", async () => {
    hub();
    const { id } = await onboard();
    await until(
      "the deploy to be under way",
      async () => ((await readWorkflow(db(), id))?.stage === "wait_for_deployed" ? true : undefined),
      { everyMs: 5 },
    );
    await verb(id, "cancel");
    const end = await ended(id, "cancelled", "completed");
    const machine = rig.maas.sim.region.findMachine(end.maas_system_id ?? "");
    expect([4, 6]).toContain(machine?.status);
    expect(await db().select().from(workflowSubjects).where(eq(workflowSubjects.workflowId, id))).toEqual([]);
  });
});

describe("a deploy call that MAAS has not answered yet", () => {
  /**
   * Starts an onboarding, and waits until its deploy call has reached the simulated MAAS. The simulated MAAS carries out the deploy call only when
   * the test calls `carryOut`.
   */
  async function deployHeld() {
    const { promise: held, resolve: carryOut } = Promise.withResolvers<void>();
    rig.maas.sim.faults.add({ match: { op: "deploy" }, kind: "held", held, times: 1 });
    hub();
    const { id, nodeId } = await onboard();
    await until("the deploy call to reach MAAS", async () =>
      rig.maas.sim.faults.list().length === 0 ? true : undefined,
    );
    return { id, nodeId, machine: await machineOf(id), carryOut };
  }

  it("ends before restart_clean compensates it, so the host is deployed once more with the newest token", async () => {
    const { id, nodeId, machine, carryOut } = await deployHeld();
    for (const _click of [1, 2]) expect((await verb(id, "restart_clean")).status).toBe("running");
    expect(await readOnboarding(db(), id)).toMatchObject({ pending_verb: "restart_clean" });
    expect(machine).toMatchObject({ status: 4, owner: null });
    // The test stops the host's simulated agent, because the hub would keep a node whose agent has enrolled.
    alive.delete(id);
    carryOut();
    await until("the deploy to be taken back", () =>
      counters(machine.systemId)?.["release"] === 1 ? true : undefined,
    );
    alive.add(id);
    const end = await ended(id, "completed", "failed_manual_intervention");
    expect(end, end.error_message ?? "").toMatchObject({ status: "completed", pending_verb: null });
    // The hub took the first deploy back with one release. If MAAS was still deploying, the hub aborted the deploy before.
    expect(counters(machine.systemId)).toMatchObject({ deploy: 2, release: 1 });
    const [node] = await db().select().from(nodes).where(eq(nodes.id, nodeId));
    expect(node).toMatchObject({ status: "active", generation: 1 });
  });

  it("ends before a freeze takes effect, so a resume recognizes the deploy as its own", async () => {
    const { id, machine, carryOut } = await deployHeld();
    await verb(id, "mark_manual_intervention");
    carryOut();
    const frozen = await ended(id, "failed_manual_intervention");
    expect(frozen).toMatchObject({ error_code: "stopped_by_operator", pending_verb: null });
    expect(machine.owner).not.toBeNull();
    await verb(id, "resume");
    await ended(id, "completed");
    expect(counters(machine.systemId)).toMatchObject({ deploy: 1, release: 0 });
  });

  it("is awaited after the hub that made it is gone", async () => {
    const { id, machine, carryOut } = await deployHeld();
    // The hub stops before MAAS has answered its deploy call, and MAAS still processes the call.
    await Promise.all(runners.map((runner) => runner.close()));
    await verb(id, "restart_clean");
    hub();
    await until("the undoing to wait for what nobody heard of", async () => {
      const row = await readWorkflow(db(), id);
      return row?.waitReason?.includes("whose answer was lost") === true ? true : undefined;
    });
    expect(machine).toMatchObject({ status: 4, owner: null });
    carryOut();
    const end = await ended(id, "completed", "failed_manual_intervention");
    expect(end.status, end.error_message ?? "").toBe("completed");
    expect(counters(machine.systemId)).toMatchObject({ deploy: 2, release: 1 });
  });
});

describe("a batch", () => {
  it("runs at most batch_max_parallel hosts at once over two hubs, and one failure blocks no other host", async () => {
    const profileId = await rig.addProfile("narrow", { batch_max_parallel: 2, deploy_max_parallel: 1 });
    const hosts = Array.from({ length: 6 }, () => ++boxes).map((n) => ({
      hostname: `host-${n}`,
      ipmi_ip: bmcAddress(n),
      location: { room: null, rack: "r-narrow", unit: n },
    }));
    // The BMC of the batch's last host is unreachable.
    const dead = rig.maas.sim.region.state.hardware.find((box) => box.bmcAddress === hosts.at(-1)?.ipmi_ip);
    if (dead !== undefined) dead.bmcReachable = false;
    const request = { site_id: rig.siteId, profile_id: profileId, sku_id: SKU, nodes: hosts };
    const { batch_id, onboardings } = await rig.services.inTx((tx) =>
      startOnboardingBatch(tx, { request, requestedBy: "ann" }),
    );
    for (const { onboarding_id } of onboardings) alive.add(onboarding_id);
    hub();
    hub();
    let most = 0;
    let deploying = 0;
    const batch = await until("the batch to be done", async () => {
      const rows = await db().select().from(workflows).where(eq(workflows.batchId, batch_id));
      most = Math.max(most, rows.filter((row) => ["running", "compensating"].includes(row.status)).length);
      deploying = Math.max(deploying, rows.filter((row) => row.stage === "wait_for_deployed").length);
      const seen = await readBatch(db(), "onboarding", batch_id);
      return seen?.done === true ? seen : undefined;
    });
    expect(most).toBeLessThanOrEqual(2);
    expect(deploying).toBeLessThanOrEqual(1);
    const placed = await db().select().from(nodes).where(eq(nodes.rack, "r-narrow"));
    expect(placed.map(({ hostname, unit }) => [hostname, `host-${unit}`]).filter(([a, b]) => a === b)).toHaveLength(5);
    expect(batch).toMatchObject({ total: 6, counts: { completed: 5, failed_manual_intervention: 1 } });
    const failed = await listOnboardings(
      db(),
      { batchId: batch_id, status: "failed_manual_intervention", reach: EVERYWHERE },
      { before: null, limit: 10 },
    );
    expect(failed[0]?.onboarding).toMatchObject({
      failure_class: "bmc_power_failure",
      current_stage: "commission_node",
    });
    const first = await listOnboardings(db(), { batchId: batch_id, reach: EVERYWHERE }, { before: null, limit: 4 });
    expect(first).toHaveLength(4);
    const { at = "", onboarding: last } = first.at(-1) ?? {};
    const before = [at, last?.onboarding_id ?? ""] as const;
    const rest = await listOnboardings(db(), { batchId: batch_id, reach: EVERYWHERE }, { before, limit: 4 });
    expect(rest).toHaveLength(2);
    expect(new Set([...first, ...rest].map(({ onboarding }) => onboarding.onboarding_id)).size).toBe(6);
  });

  it("is refused as a whole if one host is taken, with each such row and the other onboarding", async () => {
    const { id, hostname } = await onboard();
    const free = { hostname: "host-free", ipmi_ip: "10.99.0.1" };
    const nodesOfBatch = [free, { hostname, ipmi_ip: "10.99.0.2" }];
    const request = { site_id: rig.siteId, profile_id: rig.profileId, sku_id: SKU, nodes: nodesOfBatch };
    await expect(
      rig.services.inTx((tx) => startOnboardingBatch(tx, { request, requestedBy: "ann" })),
    ).rejects.toMatchObject({
      code: "onboarding_exists",
      context: { onboarding_id: id },
      errors: [{ pointer: "/nodes/1/hostname" }],
    });
    const single = { site_id: rig.siteId, profile_id: rig.profileId, sku_id: SKU, ...free };
    const created = await rig.services.inTx((tx) => startOnboarding(tx, { request: single, requestedBy: "ann" }));
    await verb(created.onboarding_id, "cancel");
  });
});

describe("a request", () => {
  const request = () => ({
    site_id: rig.siteId,
    profile_id: rig.profileId,
    sku_id: SKU,
    hostname: "host-x",
    ipmi_ip: "10.99.1.1",
  });
  const start = (fields: Partial<ReturnType<typeof request>>) =>
    rig.services.inTx((tx) => startOnboarding(tx, { request: { ...request(), ...fields }, requestedBy: "ann" }));

  it("is refused for an unknown SKU, site or profile, with the field", async () => {
    await expect(start({ sku_id: "unknown" })).rejects.toMatchObject({
      code: "sku_unknown",
      errors: [{ pointer: "/sku_id" }],
    });
    await expect(start({ site_id: randomUUID() as typeof rig.siteId })).rejects.toMatchObject({
      code: "reference_unknown",
      errors: [{ pointer: "/site_id" }],
    });
    await expect(start({ profile_id: randomUUID() as typeof rig.profileId })).rejects.toMatchObject({
      code: "reference_unknown",
      errors: [{ pointer: "/profile_id" }],
    });
  });

  it("is refused for a host that is already in service", async () => {
    hub();
    const { id, hostname, nodeId } = await onboard();
    await ended(id, "completed");
    await expect(start({ hostname })).rejects.toMatchObject({ code: "conflict", context: { node_id: nodeId } });
  });
});
