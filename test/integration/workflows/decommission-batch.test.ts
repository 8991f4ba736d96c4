import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, asc, eq, like } from "../../../hub/db/orm.ts";
import { readBatch } from "../../../hub/db/queries/batches.ts";
import { domainEvents, nodes, workflows } from "../../../hub/db/schema/index.ts";
import type { Watcher } from "../../../hub/watcher/watcher.ts";
import { startDecommissionBatch } from "../../../hub/workflows/decommission/start-decommission-batch.ts";
import { cancelBatch, recoverBatch } from "../../../hub/workflows/engine/batch-verbs.ts";
import { resumeBatch } from "../../../hub/workflows/engine/pause-batch.ts";
import type { WorkflowRunner } from "../../../hub/workflows/engine/runner.ts";
import type { Workflow } from "../../../hub/workflows/engine/workflow.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import { DecommissionBatchCreate } from "../../../shared/api/batches.ts";
import type { BatchId, ProfileId } from "../../../shared/ids.ts";
import { STATUS } from "../../fakes/maas/state/statuses.ts";
import { findHistoryFaults } from "../../support/claim-history.ts";
import { type OnboardingRig, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { type DeployedHost, retiredHost, startRelease } from "../../support/release-world.ts";
import { startRigWatcher, startRunner } from "../../support/rig-hub.ts";
import { until } from "../../support/until.ts";

const AT_ONCE = 2;
/** A speed of the simulated MAAS at which no action ends by itself. */
const STANDSTILL = 1e-6;
const ann = { actor: "ann", role: "admin", reason: "the rack moves", requestId: "r1" } as const;

describe("a batch of decommissions", () => {
  let rig: OnboardingRig;
  let kinds: readonly Workflow[];
  let profileId: ProfileId;
  let watcher: Watcher;
  let boxes = 0;
  const hubs: WorkflowRunner[] = [];
  beforeAll(async () => {
    rig = await startOnboardingRig({ machines: 22 });
    kinds = workflowsOf(rig.services);
    profileId = await rig.addProfile("narrow", { batch_max_parallel: AT_ONCE });
    watcher = startRigWatcher(rig);
  });
  afterAll(async () => {
    await Promise.all(hubs.map((hub) => hub.close()));
    await watcher?.close();
    await rig?.close();
  });

  const db = () => rig.services.db;
  const countsOf = ({ machine }: DeployedHost) => rig.maas.sim.region.state.counters[machine.systemId];
  async function retiredHosts(count: number, profile = profileId): Promise<DeployedHost[]> {
    const hosts: DeployedHost[] = [];
    for (let n = 0; n < count; n += 1) {
      boxes += 1;
      hosts.push(await retiredHost(rig, boxes, profile));
    }
    return hosts;
  }
  async function release(
    hosts: readonly DeployedHost[],
    options: object = {},
    inOrder: (hosts: readonly DeployedHost[]) => void = () => undefined,
  ): Promise<BatchId> {
    const request = DecommissionBatchCreate.parse({
      ...options,
      site_id: rig.siteId,
      operation: { mode: "release", reason: ann.reason },
      node_ids: hosts.map((host) => host.nodeId),
    });
    const { batch_id: id } = await rig.services.inTx(async (tx) => {
      const started = await startDecommissionBatch(tx, request, ann);
      const ids = new Map(started.decommissions.map((one) => [one.node_id, one.decommission_id ?? ""]));
      const idOf = ({ nodeId }: DeployedHost): string => ids.get(nodeId) ?? "";
      inOrder([...hosts].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1)));
      return started;
    });
    if (id === null) throw new Error("the request began nothing");
    return id;
  }
  const done = (id: BatchId) =>
    until(
      "the batch to be done",
      async () => {
        const batch = await readBatch(db(), "decommission", id);
        return batch?.done ? batch : undefined;
      },
      { timeoutMs: 120_000 },
    );
  const verb = (id: BatchId) => [rig.services.inTx, kinds, { kind: "decommission", id }] as const;
  async function mostAtOnce(): Promise<number> {
    const { rows } = await rig.test.database.pool.query<{ most: number }>(
      `with moments as (
         select started_at as at, 1 as step from workflows where batch_id is not null and started_at is not null
         union all select completed_at, -1 from workflows where batch_id is not null and started_at is not null)
       select max(running)::int as most from (select sum(step) over (order by at, step) as running from moments) m`,
    );
    return rows[0]?.most ?? 0;
  }

  it("runs at most batch_max_parallel nodes at once over two hubs and two batches, and one failure stops no other node", async () => {
    const [hosts, others, [single]] = [await retiredHosts(4), await retiredHosts(3), await retiredHosts(1)];
    if (single === undefined || hosts[2] === undefined) throw new Error("no host");
    hosts[2].machine.locked = true;
    const [first, second] = [await release(hosts), await release(others)];
    const alone = await startRelease(rig, single);
    for (let hub = 0; hub < 2; hub += 1) hubs.push(startRunner(rig, kinds));
    const failed = await done(first);
    expect(failed).toMatchObject({ total: 4, succeeded: 3, failed: 1, mode: "release" });
    expect(failed.failures).toMatchObject([
      { error_code: "machine_locked", hosts: [{ hostname: hosts[2].hostname, onboarding_id: null }] },
    ]);
    expect(await done(second)).toMatchObject({ total: 3, succeeded: 3 });
    expect(await mostAtOnce()).toBe(AT_ONCE);
    const [lone] = await db().select().from(workflows).where(eq(workflows.id, alone.id));
    const started = await db().select().from(workflows).where(eq(workflows.batchId, second));
    const last = Math.max(...started.map((row) => row.startedAt?.getTime() ?? 0));
    expect(lone?.startedAt?.getTime(), "a decommission outside a batch waits for no place").toBeLessThan(last);

    hosts[2].machine.locked = false;
    const recovered = await recoverBatch(...verb(first), ann);
    expect(recovered).toMatchObject({ applied: 1, skipped: 0, results: [{ hostname: hosts[2].hostname }] });
    expect(await done(first)).toMatchObject({ succeeded: 4, failed: 0 });
    for (const host of [...hosts, ...others]) {
      expect(countsOf(host)).toMatchObject({ release: 1 });
      expect(host.machine).toMatchObject({ status: STATUS.ready, owner: null });
    }
    const told = await db().select().from(domainEvents).where(eq(domainEvents.type, "node.decommission.completed"));
    const batchOf = told.map(({ data }) => (data as { batch_id: string | null }).batch_id);
    expect(batchOf.filter((id) => id === first)).toHaveLength(4);
    expect(await findHistoryFaults(rig.test.database.pool)).toEqual([]);
  });

  it("stops at its number of failures until a person resumes it, and then counts only new failures", async () => {
    const hosts = await retiredHosts(5);
    // Admission begins the batch's operations in the order of their ids, so each host fails until the test recovers it.
    for (const { machine } of hosts) machine.locked = true;
    const id = await release(hosts, { stop_after_failures: 1 });
    const stopped = (failed: number) =>
      until(`the batch to stop after ${failed} failures`, async () => {
        const batch = await readBatch(db(), "decommission", id);
        return batch?.paused !== null && batch?.failed === failed ? batch : undefined;
      });
    const first = await stopped(AT_ONCE);
    expect(first).toMatchObject({ done: false, counts: { pending: 3 }, stop_after_failures: 1, paused: { by: null } });
    expect(first.paused?.reason).toMatch(/^[12] hosts? of the batch ha(s|ve) failed, so no further host begins$/);
    expect(first.paused?.next_action).toContain("recover-decommission-batch");
    const waiting = () =>
      db()
        .select()
        .from(workflows)
        .where(and(eq(workflows.batchId, id), eq(workflows.status, "pending")));
    for (const row of await waiting())
      expect(row).toMatchObject({ startedAt: null, waitReason: expect.stringContaining("A person to resume") });

    for (const { machine } of hosts) machine.locked = false;
    const recovered = await recoverBatch(...verb(id), ann);
    expect(recovered, "a person may continue failed hosts of a paused batch").toMatchObject({ applied: AT_ONCE });
    const half = await until("the recovered hosts to be released", async () => {
      const batch = await readBatch(db(), "decommission", id);
      return batch?.succeeded === AT_ONCE ? batch : undefined;
    });
    expect(half, "a recovery does not resume the batch").toMatchObject({ counts: { pending: 3 }, failed: 0 });
    expect(half.paused).toEqual(first.paused);
    await rig.services.inTx((tx) => resumeBatch(tx, { kind: "decommission", id }, ann));
    expect(await done(id)).toMatchObject({ succeeded: 5, failed: 0, paused: null });
    const told = await db()
      .select()
      .from(domainEvents)
      .where(like(domainEvents.type, "batch.%"))
      .orderBy(asc(domainEvents.seq));
    expect(told.map(({ type, subject, data }) => ({ type, subject, by: (data as { by: unknown }).by }))).toEqual([
      { type: "batch.paused", subject: `decommission-batches/${id}`, by: null },
      { type: "batch.resumed", subject: `decommission-batches/${id}`, by: "ann" },
    ]);
  });

  it("counts a failed host for its limit also after the host was recovered", async () => {
    const oneAtOnce = await rig.addProfile("one-at-once", { batch_max_parallel: 1 });
    const { region } = rig.maas.sim;
    const { speed } = region;
    region.speed = STANDSTILL;
    let hosts: readonly DeployedHost[] = [];
    // The batch admits its hosts in the order of their operations' ids.
    const id = await release(await retiredHosts(4, oneAtOnce), { stop_after_failures: 2 }, (inOrder) => {
      hosts = inOrder;
      for (const at of [0, 2]) if (hosts[at] !== undefined) hosts[at].machine.locked = true;
    });
    const [first, second, , last] = hosts;
    if (first === undefined || second === undefined || last === undefined) throw new Error("no hosts");
    await until("the second host to be at work", async () => (countsOf(second)?.release === 1 ? true : undefined));
    first.machine.locked = false;
    expect(await recoverBatch(...verb(id), ann)).toMatchObject({ applied: 1 });
    expect(await readBatch(db(), "decommission", id)).toMatchObject({ failed: 0, paused: null });
    region.speed = speed;
    region.settle(second.machine);
    const end = await until("the batch to stop or to end", async () => {
      const batch = await readBatch(db(), "decommission", id);
      return batch?.paused !== null || batch?.done ? batch : undefined;
    });
    expect(end).toMatchObject({ succeeded: 2, failed: 1, counts: { pending: 1 } });
    expect(end?.paused?.reason).toBe("2 hosts of the batch have failed, so no further host begins");
    expect(countsOf(last)?.release ?? 0).toBe(0);
    await cancelBatch(...verb(id), { ...ann, failed: true });
    await done(id);
  });

  it("is cancelled in the middle: no waiting node begins, and what MAAS has accepted is not undone", async () => {
    const hosts = await retiredHosts(5);
    const { region } = rig.maas.sim;
    // The simulated MAAS never ends a release in this test, so the batch's first nodes keep their places until the cancel.
    const { speed } = region;
    region.speed = STANDSTILL;
    const id = await release(hosts);
    const released = () => hosts.filter((host) => countsOf(host)?.release === 1);
    await until("MAAS to accept the first releases", async () => (released().length === AT_ONCE ? true : undefined));
    expect((await readBatch(db(), "decommission", id))?.counts).toEqual({ running: AT_ONCE, pending: 5 - AT_ONCE });
    const cancelled = await cancelBatch(...verb(id), { ...ann, failed: true });
    expect(cancelled).toMatchObject({ applied: 5, skipped: 0 });
    expect(await done(id)).toMatchObject({ total: 5, cancelled: 5, succeeded: 0, failed: 0 });
    const rows = await db().select().from(workflows).where(eq(workflows.batchId, id));
    expect(rows.filter((row) => row.startedAt !== null)).toHaveLength(AT_ONCE);
    expect(released()).toHaveLength(AT_ONCE);
    region.speed = speed;
    for (const host of hosts) {
      region.settle(host.machine);
      const [node] = await db().select().from(nodes).where(eq(nodes.id, host.nodeId));
      expect(node?.status).toBe("retired");
    }
    const rest = await release(hosts);
    expect(await done(rest), "the nodes are free for another batch").toMatchObject({ total: 5, succeeded: 5 });
    for (const host of hosts) expect(countsOf(host)).toMatchObject({ release: 1 });
  });
});
