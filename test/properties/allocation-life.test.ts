/**
 * Tests allocations under random requests, answers of agents and sweeps of two hubs, some of them at the same time. After a last sweep, no allocation
 * may wait for an event that has already happened. The history of each allocation must be a path in the table `ALLOCATION_MOVES`.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sweepAllocations } from "../../hub/allocations/sweep.ts";
import { type Database, openDatabase } from "../../hub/db/client.ts";
import { asc, eq, sql } from "../../hub/db/orm.ts";
import { recordMachineReleased } from "../../hub/db/queries/decommissions.ts";
import { allocations, domainEvents } from "../../hub/db/schema/index.ts";
import { ALLOCATION_MOVES } from "../../hub/node/allocation-moves.ts";
import type { AllocationStatus } from "../../shared/allocation-status.ts";
import { type NodeId, SiteId, type TaskId, type WorkflowId } from "../../shared/ids.ts";
import { addSchedulableNode, endTask, SSH_KEY } from "../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../support/api-harness.ts";
import { countersign } from "../support/countersign.ts";
import { quietLog } from "../support/log.ts";
import { UNRECORDED_ALLOCATIONS } from "../support/tenancy-records.ts";

const ADMIN = "/api/v1/admin";
const REASON = { reason: "a property" };
const NODES = 2;

let api: ApiHarness;
let hubs: readonly Database[];
let siteId: SiteId;
beforeAll(async () => {
  api = await startApi();
  siteId = SiteId.parse((await seedApi(api)).siteId);
  const { url } = api.database;
  hubs = ["a", "b"].map((name) => openDatabase({ url, poolSize: 4, applicationName: `hub-${name}`, log: quietLog }));
});
afterAll(async () => {
  for (const hub of hubs ?? []) await hub.close();
  await api?.close();
});

interface Step {
  readonly what: (typeof STEPS)[number];
  readonly node: number;
  /** True if a step of the random history happens at the same time as the next step. */
  readonly withNext: boolean;
}
const STEPS = [
  "allocate",
  "allocate",
  "agent succeeds",
  "agent fails",
  "grant",
  "release",
  "force-release",
  "drain",
  "take by drain",
  "cancel operation",
  "host released",
  "planned end passes",
  "sweep",
  "both hubs sweep",
] as const;
const Step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom(...STEPS),
  node: fc.nat(NODES - 1),
  withNext: fc.boolean(),
});

const db = () => api.database.database.db;
const sweep = (hub: number) => {
  const { db: on, inTx } = hubs[hub] ?? api.database.database;
  return sweepAllocations({ db: on, inTx, log: quietLog, countersign });
};
async function post(path: string, body: object): Promise<void> {
  const { status, problem } = await api.ask("POST", `${ADMIN}${path}`, body);
  expect(status, `${path} ${JSON.stringify(problem)}`).toBeLessThan(500);
}
const openOf = async (nodeId: NodeId) =>
  (await db().select().from(allocations).where(eq(allocations.nodeId, nodeId))).find(
    ({ status }) => status !== "ended",
  );
async function holderOf(nodeId: NodeId): Promise<WorkflowId | undefined> {
  const { rows } = await db().execute<{ id: WorkflowId }>(
    sql`select workflow_id as id from workflow_subjects where subject = ${`node:${nodeId}`}`,
  );
  return rows[0]?.id;
}
const answer = (task: TaskId, ending: Parameters<typeof endTask>[2] = {}) =>
  api.database.database.inTx((tx) => endTask(tx, task, ending));

async function act({ what }: Step, nodeId: NodeId): Promise<void> {
  const open = await openOf(nodeId);
  const holder = await holderOf(nodeId);
  switch (what) {
    case "allocate":
      return post("/allocations", { node_id: nodeId, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY] });
    case "drain":
      return post(`/nodes/${nodeId}/drain`, REASON);
    case "take by drain":
      return post(`/nodes/${nodeId}/drain`, { ...REASON, force_release_allocation: true });
    case "cancel operation":
      return holder === undefined ? undefined : post(`/decommissions/${holder}/cancel`, REASON);
    case "host released":
      if (holder !== undefined)
        await api.database.database.inTx((tx) => recordMachineReleased(tx, holder, open?.generation ?? 0));
      return;
    case "sweep":
      return void (await sweep(0));
    case "both hubs sweep":
      return void (await Promise.all([sweep(0), sweep(1)]));
    default:
      if (open !== undefined) await actOn(what, open);
  }
}

async function actOn(what: (typeof STEPS)[number], open: typeof allocations.$inferSelect): Promise<void> {
  if (what === "grant" || what === "release" || what === "force-release")
    return post(`/allocations/${open.id}/${what}`, REASON);
  if (what === "planned end passes") {
    await db().update(allocations).set({ endsAt: sql`now()` }).where(eq(allocations.id, open.id));
    return;
  }
  if (open.status !== "granting" || open.grantTaskId === null) return;
  if (what === "agent succeeds") await answer(open.grantTaskId);
  else await answer(open.grantTaskId, { state: "failed", result: null, errorCode: "account_exists" });
}

async function mustBeSettled(): Promise<void> {
  await sweep(0);
  expect(await sweep(1), "a second sweep has nothing to move").toBe(0);
  const { rows } = await db().execute(sql`
    select a.id, a.status from allocations a join nodes n on n.id = a.node_id
    left join tasks t on t.id = a.grant_task_id
    left join workflow_subjects s on s.subject = 'node:' || a.node_id
    where (a.status = 'granting' and t.finished_at is not null)
      or (a.status = 'ending' and a.decommission_id is null and s.workflow_id is null and n.status in ('active', 'offline', 'quarantined'))
      or (a.status in ('granting', 'active', 'failed') and a.ends_at <= now() and s.workflow_id is null and n.status in ('active', 'offline'))`);
  expect(rows).toEqual([]);
  expect((await db().execute(sql.raw(UNRECORDED_ALLOCATIONS))).rows).toEqual([]);
  for (const row of await db().select().from(allocations)) {
    const told = await db()
      .select({ type: domainEvents.type })
      .from(domainEvents)
      .where(eq(domainEvents.subject, `allocations/${row.id}`))
      .orderBy(asc(domainEvents.seq));
    const path = told.map(({ type }) => type.split(".").at(-1)?.replace("started", "granting") as AllocationStatus);
    expect(path[0]).toBe("granting");
    expect(path.at(-1), "the last event tells the present status").toBe(row.status);
    for (const [index, status] of path.slice(1).entries())
      expect(ALLOCATION_MOVES[path[index] ?? "ended"], `${path.join(" -> ")}`).toContain(status);
  }
}

it("never leaves an allocation that waits for something that has happened", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(Step, { minLength: 3, maxLength: 25 }), async (steps) => {
      await db().execute(
        sql`truncate allocations, nodes, node_conditions, tasks, workflows, node_decommissions, workflow_subjects, domain_events cascade`,
      );
      const ids = await api.database.database.inTx(async (tx) => {
        const made: NodeId[] = [];
        for (let n = 0; n < NODES; n += 1)
          made.push(await addSchedulableNode(tx, { siteId, hostname: `l${n}`, sku: "s" }));
        return made;
      });
      const idOf = ({ node }: Step): NodeId => ids[node] as NodeId;
      for (let index = 0; index < steps.length; index += 1) {
        const [step, next] = [steps[index] as Step, steps[index + 1]];
        if (!step.withNext || next === undefined) await act(step, idOf(step));
        else {
          await Promise.all([act(step, idOf(step)), act(next, idOf(next))]);
          index += 1;
        }
      }
      await mustBeSettled();
    }),
    { numRuns: 40 },
  );
});
