import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq, inArray } from "../../../hub/db/orm.ts";
import { listBatches, readBatch } from "../../../hub/db/queries/batches.ts";
import { EVERYWHERE } from "../../../hub/db/queries/reach.ts";
import { isTerminal } from "../../../hub/db/queries/workflows.ts";
import { auditLogs, workflows } from "../../../hub/db/schema/index.ts";
import type { Watcher } from "../../../hub/watcher/watcher.ts";
import { cancelBatch, recoverBatch } from "../../../hub/workflows/engine/batch-verbs.ts";
import type { WorkflowRunner } from "../../../hub/workflows/engine/runner.ts";
import type { Workflow } from "../../../hub/workflows/engine/workflow.ts";
import { startOnboardingBatch } from "../../../hub/workflows/onboarding/start-onboarding.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import { Secret } from "../../../shared/secret.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../../fakes/maas/state/site.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { startRigWatcher, startRunner } from "../../support/rig-hub.ts";
import { until } from "../../support/until.ts";

const HOSTS = 200;
const AT_ONCE = 24;
/** The number of simulated hosts in the batches. A simulated host whose number is above IN_BATCHES has a machine in MAAS but no onboarding. */
const IN_BATCHES = HOSTS + 20;
const STRANGERS = 5;
/** A simulated agent acts again after `REPEAT_MS`, in milliseconds, although its workflow's row has not changed. */
const REPEAT_MS = 500;
/** The number of hosts that each kind of fault hits. */
const EACH = 8;
type Fault = "commissioning" | "install" | "datasource once" | "datasource for good" | "bmc" | "no boot disk";
const FAULTS: readonly Fault[] = [
  "commissioning",
  "install",
  "datasource once",
  "datasource for good",
  "bmc",
  "no boot disk",
];

/**
 * Maps the number of each faulty host, counted from 1, to the host's fault. A shuffle with a fixed seed distributes the faults, so each run of the
 * test has the same faults.
 */
function faultsOfHosts(): Map<number, Fault> {
  let seed = 20_261_121;
  const random = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return seed / 2 ** 32;
  };
  const numbers = Array.from({ length: HOSTS }, (_, index) => index + 1)
    .map((n) => [random(), n] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, n]) => n);
  return new Map(
    FAULTS.flatMap((fault, kind) => numbers.slice(kind * EACH, (kind + 1) * EACH).map((n) => [n, fault] as const)),
  );
}

describe("a batch of 200 hosts over night", () => {
  let rig: OnboardingRig;
  let kinds: readonly Workflow[];
  let watcher: Watcher;
  const hubs: WorkflowRunner[] = [];
  let playing = true;
  let played: Promise<void>;
  /** If `playAgents` fails, its error ends all waits of the test, because no onboarding could end without agents. */
  const agents = new AbortController();
  const faults = faultsOfHosts();
  const ann = { actor: "ann", role: "admin", reason: "the morning after" } as const;
  const db = () => rig.services.db;

  const strangers = () => {
    const { machines, counters } = rig.maas.sim.region.state;
    const known = machines.filter((one) => one.hostname.startsWith("stranger-"));
    return structuredClone(known.map((machine) => ({ machine, counted: counters[machine.systemId] })));
  };
  async function enlistStrangers(): Promise<void> {
    const maas = await rig.services.maas(rig.siteId);
    for (let n = IN_BATCHES + 1; n <= IN_BATCHES + STRANGERS; n += 1) {
      const power = { address: bmcAddress(n), user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) };
      await maas.createMachine({ hostname: `stranger-${n}`, architecture: "amd64/generic", power });
    }
  }

  /**
   * A simulated agent acts at once when its workflow's row has changed, and otherwise after `REPEAT_MS`. Most rows stay the same between two looks,
   * because their stages wait for the watcher.
   */
  async function playAgents(): Promise<void> {
    const played = new Map<string, { readonly row: string; readonly at: number }>();
    while (playing) {
      const waiting = await db()
        .select({ id: workflows.id, fence: workflows.fence, updatedAt: workflows.updatedAt })
        .from(workflows)
        .where(
          and(
            eq(workflows.status, "running"),
            inArray(workflows.stage, [
              "ensure_hardware_sync_configured",
              "wait_for_hardware_sync_healthy",
              "wait_for_agent_enrollment",
              "check_hardware",
            ]),
          ),
        );
      for (const { id, fence, updatedAt } of waiting) {
        const row = `${fence} ${updatedAt.toISOString()}`;
        const last = played.get(id);
        if (last?.row === row && performance.now() - last.at < REPEAT_MS) continue;
        played.set(id, { row, at: performance.now() });
        await rig.playAgent(id);
      }
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }

  function plantFault(n: number, fault: Fault): void {
    const { state } = rig.maas.sim.region;
    const box = state.hardware.find((one) => one.bmcAddress === bmcAddress(n));
    if (box === undefined) throw new Error(`no box ${n}`);
    const plan = { commission: [], deploy: [] } as (typeof state.plans)[string];
    // A lasting fault hits every try of a stage, because a hub that lost its lease before its request may cause one more try.
    const always = <T>(outcome: T): T[] => Array.from({ length: 9 }, () => outcome);
    if (fault === "commissioning") plan.commission.push(...always("fail" as const));
    if (fault === "install") plan.deploy.push(...always("install_failure" as const));
    if (fault === "datasource once") plan.deploy.push("datasource_failure");
    if (fault === "datasource for good") plan.deploy.push(...always("datasource_failure" as const));
    if (fault === "bmc") box.bmcReachable = false;
    if (fault === "no boot disk") for (const disk of box.disks) disk.model = disk.model.replace(/boss/i, "Unknown");
    state.plans[`night-${n}`] = plan;
  }

  function mend(): void {
    const { state } = rig.maas.sim.region;
    for (const [n] of faults) {
      state.plans[`night-${n}`] = { commission: [], deploy: [] };
      const box = state.hardware.find((one) => one.bmcAddress === bmcAddress(n));
      if (box === undefined) continue;
      box.bmcReachable = true;
      for (const disk of box.disks) disk.model = disk.model.replace("Unknown", "BOSS");
      for (const machine of state.machines.filter((one) => one.hardwareId === box.id))
        for (const device of machine.blockDevices) device.model = device.model?.replace("Unknown", "BOSS") ?? null;
    }
  }

  beforeAll(async () => {
    rig = await startOnboardingRig({ machines: IN_BATCHES + STRANGERS });
    await enlistStrangers();
    kinds = workflowsOf(rig.services);
    // Each poll reads all machines of the region, so frequent polls would cost more than the onboardings.
    watcher = startRigWatcher(rig, { pollIntervalMs: 500 });
    for (let hub = 0; hub < 2; hub += 1) hubs.push(startRunner(rig, kinds));
    played = playAgents().catch((error: unknown) => agents.abort(error));
  });
  afterAll(async () => {
    playing = false;
    await played;
    await Promise.all(hubs.map((hub) => hub.close()));
    await watcher?.close();
    await rig?.close();
  });

  const startBatch = async (from: number, hosts: number, profile: string, name: string) => {
    const profileId = await rig.addProfile(profile, { batch_max_parallel: AT_ONCE, deploy_max_parallel: AT_ONCE });
    const nodes = Array.from({ length: hosts }, (_, index) => ({
      hostname: `${name}-${from + index}`,
      ipmi_ip: bmcAddress(from + index),
    }));
    const request = { site_id: rig.siteId, profile_id: profileId, sku_id: SKU, nodes };
    return rig.services.inTx((tx) => startOnboardingBatch(tx, { request, requestedBy: "ann" }));
  };
  const done = (id: Awaited<ReturnType<typeof startBatch>>["batch_id"]) =>
    until(
      "the batch to be done",
      async () => {
        const batch = await readBatch(db(), "onboarding", id);
        return batch?.done ? batch : undefined;
      },
      { timeoutMs: 1_100_000, everyMs: 250, signal: agents.signal },
    );

  it("ends with the right counts and its failures grouped by code, and completes after repairs", {
    timeout: 1_200_000,
  }, async () => {
    for (const [n, fault] of faults) plantFault(n, fault);
    const untouched = strangers();
    expect(untouched).toHaveLength(STRANGERS);
    const { batch_id } = await startBatch(1, HOSTS, "night", "night");
    const night = await done(batch_id);
    const broken = EACH * (FAULTS.length - 1);
    const told = night.failures.map(
      ({ error_code, next_verb, hosts }) => [error_code, next_verb, hosts.length] as const,
    );
    const { total, succeeded, failed, cancelled } = night;
    expect({ total, succeeded, failed, cancelled, told: told.toSorted(([a], [b]) => (a < b ? -1 : 1)) }).toEqual({
      total: HOSTS,
      succeeded: HOSTS - broken,
      failed: broken,
      cancelled: 0,
      told: [
        ["boss_disk_missing", "resume", EACH],
        ["commissioning_failed", "resume", EACH],
        ["datasource_retry_exhausted", "rerun", EACH],
        ["deploy_failed", "rerun", EACH],
        ["power_action_failed", "resume", EACH],
      ],
    });
    for (const { hosts, next_action } of night.failures) {
      expect(next_action?.length).toBeGreaterThan(20);
      for (const { message } of hosts) expect(message?.length).toBeGreaterThan(20);
    }
    await expectLimitKept(batch_id);

    mend();
    const recovered = await recoverBatch(rig.services.inTx, kinds, { kind: "onboarding", id: batch_id }, ann);
    expect(recovered).toMatchObject({ applied: broken, skipped: 0 });
    const audits = await db().select().from(auditLogs).where(eq(auditLogs.reason, ann.reason));
    expect(audits).toHaveLength(broken);
    const again = await recoverBatch(rig.services.inTx, kinds, { kind: "onboarding", id: batch_id }, ann);
    expect(again.applied, "a second click finds nothing that has failed").toBe(0);
    const morning = await done(batch_id);
    expect(morning, JSON.stringify(morning.failures.slice(0, 3))).toMatchObject({ succeeded: HOSTS, failed: 0 });
    expect(strangers(), "machines that are in no batch stay as they were").toEqual(untouched);
    for (const machine of rig.maas.sim.region.state.machines.filter((one) => !one.hostname.startsWith("stranger-"))) {
      const { deploy = 0, release = 0 } = rig.maas.sim.region.state.counters[machine.systemId] ?? {};
      expect({ host: machine.hostname, kept: deploy - release }).toEqual({ host: machine.hostname, kept: 1 });
    }
  });

  /** Expects, by the recorded times, that the batch never ran more onboardings at once than its limit allows. */
  async function expectLimitKept(batchId: string): Promise<void> {
    const { rows } = await rig.test.database.pool.query<{ most: number }>(
      `with moments as (
         select started_at as at, 1 as step from workflows where batch_id = $1
         union all select completed_at, -1 from workflows where batch_id = $1)
       select max(running)::int as most from (select sum(step) over (order by at, step) as running from moments) m`,
      [batchId],
    );
    expect(rows[0]?.most).toBeLessThanOrEqual(AT_ONCE);
    expect(rows[0]?.most).toBeGreaterThan(AT_ONCE / 2);
  }

  it("is cancelled as a whole: running hosts are compensated, pending hosts never begin, a second click changes nothing", async () => {
    const { batch_id } = await startBatch(HOSTS + 1, 20, "cancelled", "cancelled");
    await until(
      "some of it to run",
      async () => {
        const batch = await readBatch(db(), "onboarding", batch_id);
        return (batch?.counts.running ?? 0) > 0 ? true : undefined;
      },
      { signal: agents.signal },
    );
    const first = await cancelBatch(
      rig.services.inTx,
      kinds,
      { kind: "onboarding", id: batch_id },
      { ...ann, failed: true },
    );
    const second = await cancelBatch(
      rig.services.inTx,
      kinds,
      { kind: "onboarding", id: batch_id },
      { ...ann, failed: true },
    );
    expect(first.applied).toBeGreaterThan(0);
    for (const one of second.results)
      if (!isTerminal(one.status))
        expect(one, "what is not over is being cancelled already").toMatchObject({ skipped_because: null });
    const batch = await done(batch_id);
    expect(batch.cancelled + batch.succeeded).toBe(20);
    expect(batch.failed).toBe(0);
    for (const machine of rig.maas.sim.region.state.machines.filter((one) => one.hostname.startsWith("cancelled-")))
      if (machine.status !== 6) expect(machine.owner, machine.hostname).toBeNull();
  });

  it("is listed, newest first", async () => {
    const rows = await listBatches(
      db(),
      "onboarding",
      { siteId: rig.siteId, reach: EVERYWHERE },
      { before: null, limit: 10 },
    );
    expect(rows.map(({ batch }) => batch.total)).toEqual([20, HOSTS]);
    const [newest] = rows;
    const older = await listBatches(
      db(),
      "onboarding",
      { reach: EVERYWHERE },
      { before: [newest?.at ?? "", newest?.batch.batch_id ?? ""], limit: 10 },
    );
    expect(older.map(({ batch }) => batch.total)).toEqual([HOSTS]);
  });
});
