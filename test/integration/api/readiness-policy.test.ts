/** Readiness policies of profiles: over the API, in the list of nodes, in the sweep of conditions, and for signals in any order. */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { and, eq, sql } from "../../../hub/db/orm.ts";
import { removeOutdated } from "../../../hub/db/queries/retention.ts";
import { conditionWatch, domainEvents, nodeConditions, nodeEvents, nodes } from "../../../hub/db/schema/index.ts";
import { sweepConditions } from "../../../hub/node/condition-sweep.ts";
import { applyReadinessSignal } from "../../../hub/node/conditions.ts";
import { afterChange, type ChangeHistory, isFlapping } from "../../../shared/flapping.ts";
import { type NodeId, ProfileId, type SiteId } from "../../../shared/ids.ts";
import type { ConditionStatus } from "../../../shared/readiness.ts";
import { addSchedulableNode, onboardedWith } from "../../support/allocatable-node.ts";
import { type ApiHarness, startApiWithSite } from "../../support/api-harness.ts";

const NODES = "/api/v1/admin/nodes";
const FABRIC = { type: "fabric.ready", max_age_seconds: 600, deadline_seconds: 900 };
const POLICY = [{ all: [FABRIC] }, { any: [{ type: "disk.ok" }, { type: "disk.waived" }] }];

let api: ApiHarness;
let siteId: SiteId;
let profileId: ProfileId;
const profiles = () => `/api/v1/admin/maas-sites/${siteId}/profiles`;
const db = () => api.database.database.db;
const inTx = <T>(work: Parameters<typeof api.database.database.inTx<T>>[0]) => api.database.database.inTx(work);

beforeAll(async () => {
  ({ api, siteId } = await startApiWithSite());
  const made = await api.ask("POST", profiles(), { name: "fabric", readiness_policy: POLICY });
  profileId = ProfileId.parse(made.body.id);
});
afterAll(() => api.close());

/** Adds a node that is schedulable but for the policy of its profile. */
async function addNode(): Promise<NodeId> {
  const hostname = `n-${randomUUID().slice(0, 8)}`;
  const id = await inTx(async (tx) => {
    const nodeId = await addSchedulableNode(tx, { siteId, hostname, sku: "sku-dc1" });
    await onboardedWith(tx, { nodeId, siteId, profileId, hostname });
    return nodeId;
  });
  await db().update(nodes).set({ generation: 1 }).where(eq(nodes.id, id));
  for (const table of ["node_conditions", "node_baselines"])
    await db().execute(sql`update ${sql.identifier(table)} set generation = 1 where node_id = ${id}`);
  return id;
}
const said = (type: string, status: ConditionStatus = "True", at = new Date()) => ({
  type,
  status,
  reason: "Said",
  message: "m",
  observed_at: at.toISOString(),
});
async function say(id: NodeId, ...conditions: ReturnType<typeof said>[]): Promise<void> {
  const signal = { signal_id: randomUUID(), generation: 1, conditions };
  expect((await api.ask("POST", `${NODES}/${id}/readiness-signals`, signal)).status).toBe(202);
}
const read = async (id: NodeId) => (await api.ask("GET", `${NODES}/${id}`)).body;
const listed = async (id: NodeId) => {
  const { items } = (await api.ask("GET", `${NODES}?schedulable=true&limit=200`)).body;
  return items.some((one: { id: string }) => one.id === id);
};

describe("a profile's readiness policy", () => {
  it("is stored with its defaults, shown, changed, and bounded", async () => {
    const stored = { ...FABRIC, status: "True" };
    const { body } = await api.ask("GET", `${profiles()}/${profileId}`);
    expect(body.readiness_policy[0]).toEqual({ all: [stored] });
    const policy = (groups: unknown) => api.ask("POST", profiles(), { name: "refused", readiness_policy: groups });
    const one = { type: "fabric.ready" };
    for (const [groups, pointer] of [
      [[{ all: [] }], "/readiness_policy/0/all"],
      [[{ all: [one], any: [one] }], "/readiness_policy/0"],
      [[{}], "/readiness_policy/0"],
      [[{ all: Array(9).fill(one) }], "/readiness_policy/0/all"],
      [Array(9).fill({ all: [one] }), "/readiness_policy"],
      [[{ any: [{ type: "agent.unheard_of" }] }], "/readiness_policy/0/any/0/type"],
      [[{ any: [{ ...one, status: "Unknown" }] }], "/readiness_policy/0/any/0/status"],
      [[{ any: [{ ...one, deadline_seconds: 1 }] }], "/readiness_policy/0/any/0/deadline_seconds"],
    ])
      expect((await policy(groups)).problem.errors?.[0]?.pointer, JSON.stringify(groups)).toBe(pointer);
  });

  it("keeps a node from being schedulable, and says which condition is missing, since when, until when, and what to do", async () => {
    const id = await addNode();
    const before = await read(id);
    expect(before).toMatchObject({
      schedulable: false,
      readiness: { ready: false, policy: { profile_name: "fabric" } },
    });
    const { lacking, generation_began_at: begun } = before.readiness;
    const until = new Date(Date.parse(begun) + 900_000).toISOString();
    expect(lacking).toMatchObject([
      { type: "fabric.ready", kind: "missing", group: 0, group_kind: "all", since: begun, until },
      { type: "disk.ok", kind: "missing", group: 1, group_kind: "any", until: null },
      { type: "disk.waived", kind: "missing", group: 1, group_kind: "any", until: null },
    ]);
    expect(before.unschedulable_reasons).toHaveLength(2);
    expect(before.unschedulable_reasons[0]).toContain(lacking[0].next_action);
    expect(await listed(id)).toBe(false);

    await say(id, said("fabric.ready", "False"), said("disk.waived"));
    const failed = await read(id);
    const { changed_at: since } = failed.conditions.find((one: { type: string }) => one.type === "fabric.ready");
    expect(failed.readiness.lacking).toMatchObject([{ kind: "wrong_status", status: "False", reason: "Said", since }]);
    await say(id, said("fabric.ready"));
    expect(await read(id)).toMatchObject({ schedulable: true, readiness: { ready: true, lacking: [] } });
    expect(await listed(id)).toBe(true);
  });

  it("does not hold for a node without a profile, whose policy is empty", async () => {
    const id = await inTx((tx) => addSchedulableNode(tx, { siteId, hostname: "alone", sku: "sku-dc1" }));
    expect(await read(id)).toMatchObject({
      schedulable: true,
      readiness: { ready: true, policy: { profile_id: null, profile_name: null, groups: [] } },
    });
  });

  it("keeps its conditions from the retention of old reports", async () => {
    const id = await addNode();
    await say(id, said("fabric.ready"), said("fabric.spare"));
    await db()
      .update(nodeConditions)
      .set({ observedAt: sql`now() - interval '3 years'` })
      .where(eq(nodeConditions.nodeId, id));
    await removeOutdated(db(), { records: 30, history: 365 });
    const types = (await read(id)).conditions.map(({ type }: { type: string }) => type);
    expect(types).toContain("fabric.ready");
    expect(types).not.toContain("fabric.spare");
  });
});

describe("the sweep of conditions", () => {
  // No limit of an earlier test's node is about to pass.
  beforeEach(async () => {
    await db().update(nodes).set({ generationBeganAt: sql`now()` });
    await db().update(nodeConditions).set({ receivedAt: sql`now()` });
  });
  const sweep = (atOnce?: number) => sweepConditions(api.database.database.inTx, 300_000, atOnce);
  const secondsAgo = (seconds: number) => sql`now() - make_interval(secs => ${seconds})`;
  const lookedAgo = (seconds: number) =>
    db()
      .update(conditionWatch)
      .set({ lookedUntil: secondsAgo(seconds), lookedAt: sql`now()` });
  const told = async (id: NodeId) => {
    const events = await db()
      .select({ data: domainEvents.data })
      .from(domainEvents)
      .where(and(eq(domainEvents.type, "node.readiness.lapsed"), eq(domainEvents.subject, `nodes/${id}`)));
    const history = await db()
      .select({ details: nodeEvents.details })
      .from(nodeEvents)
      .where(and(eq(nodeEvents.nodeId, id), eq(nodeEvents.type, "readiness_lapsed")));
    expect(history).toHaveLength(events.length);
    return events.map(({ data }) => data);
  };
  const begunAgo = (id: NodeId, seconds: number) =>
    db()
      .update(nodes)
      .set({ generationBeganAt: secondsAgo(seconds) })
      .where(eq(nodes.id, id));
  const heardAgo = (id: NodeId, seconds: number) =>
    db()
      .update(nodeConditions)
      .set({ receivedAt: secondsAgo(seconds) })
      .where(and(eq(nodeConditions.nodeId, id), eq(nodeConditions.type, "fabric.ready")));

  it("tells once that a missing condition is overdue, and that a report is too old", async () => {
    await sweep();
    const [late, old, fine] = [await addNode(), await addNode(), await addNode()];
    await begunAgo(late, 900 + 5);
    for (const id of [old, fine]) {
      await say(id, said("fabric.ready"));
      await begunAgo(id, 900 + 5);
    }
    await heardAgo(old, 600 + 5);
    await lookedAgo(20);
    expect(await sweep()).toBe(2);
    expect(await sweep()).toBe(0);
    expect(await told(late)).toMatchObject([{ node_id: late, condition: "fabric.ready", kind: "overdue" }]);
    expect(await told(old)).toMatchObject([{ condition: "fabric.ready", kind: "too_old" }]);
    expect(await told(fine)).toEqual([]);
    const [told1] = (await read(late)).readiness.lacking;
    expect(told1).toMatchObject({ kind: "overdue", until: null });
    expect((await told(late))[0]).toMatchObject({ since: told1.since, next_action: told1.next_action });
  });

  it("tells many nodes in bounded transactions, and loses none of one moment", async () => {
    const ids: NodeId[] = [];
    for (let n = 0; n < 7; n += 1) ids.push(await addNode());
    await sweep();
    await lookedAgo(60);
    await inTx(async (tx) => {
      for (const [n, id] of ids.entries())
        await tx
          .update(nodes)
          .set({ generationBeganAt: sql`now() - make_interval(secs => ${900 + 10 * Math.min(n, 3)})` })
          .where(eq(nodes.id, id));
    });
    expect(await sweep(2)).toBe(7);
    for (const id of ids) expect(await told(id)).toHaveLength(1);
  });
});

describe("a condition that changes too often", () => {
  /** Lets the seconds pass for the conditions of a node. */
  const pass = (id: NodeId, seconds: number) =>
    db().execute(sql`update node_conditions set changed_at = changed_at - make_interval(secs => ${seconds}),
      flapping_since = flapping_since - make_interval(secs => ${seconds}), changes = array(
        select one - make_interval(secs => ${seconds}) from unnest(changes) with ordinality u(one, place) order by place)
      where node_id = ${id}`);
  const rowOf = async (id: NodeId) => {
    const [row] = await db()
      .select()
      .from(nodeConditions)
      .where(and(eq(nodeConditions.nodeId, id), eq(nodeConditions.type, "fabric.ready")));
    if (row === undefined) throw new Error("the node has no such condition");
    return row;
  };

  it("counts only when it has held, while what keeps work off counts at once, and says since when, until when and why", async () => {
    const id = await addNode();
    await say(id, said("disk.ok"));
    for (const status of ["True", "False", "True", "False"] as const) {
      await say(id, said("fabric.ready", status));
      expect((await read(id)).schedulable, "after less than four changes").toBe(status === "True");
      if (status === "True") expect(await listed(id)).toBe(true);
      await pass(id, 60);
    }
    await say(id, said("fabric.ready", "True"));
    const { flappingSince, changedAt } = await rowOf(id);
    const until = new Date(changedAt.getTime() + 300_000).toISOString();
    const body = await read(id);
    expect(body.readiness.lacking).toMatchObject([
      { type: "fabric.ready", kind: "flapping", status: "True", since: flappingSince?.toISOString(), until },
    ]);
    expect(body.unschedulable_reasons).toEqual([
      expect.stringMatching(/changed too often since .* until .*Find out why it changes so often/),
    ]);
    expect(await listed(id)).toBe(false);
    await pass(id, 301);
    expect(await read(id)).toMatchObject({ schedulable: true });
    expect(await listed(id)).toBe(true);
    await say(id, said("fabric.ready", "False"));
    expect((await read(id)).readiness.lacking).toMatchObject([{ kind: "wrong_status" }]);
    // A new generation of the node begins a new history.
    await db().update(nodes).set({ generation: 2 }).where(eq(nodes.id, id));
    const again = { signal_id: randomUUID(), generation: 2, conditions: [said("fabric.ready", "True")] };
    await api.ask("POST", `${NODES}/${id}/readiness-signals`, again);
    expect(await rowOf(id)).toMatchObject({ changes: [], flappingSince: null });
  });

  it("property: is judged by the hub's SQL as by the pure function, for every sequence of reports", async () => {
    const id = await addNode();
    const report = fc.record({
      gap: fc.constantFrom(2, 40, 200, 320),
      status: fc.constantFrom<ConditionStatus[]>("True", "False", "Unknown"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(report, { minLength: 6, maxLength: 14 }), async (reports) => {
        await db().execute(sql`delete from node_conditions where node_id = ${id} and type = 'fabric.ready'`);
        let [seconds, status, history] = [0, null as ConditionStatus | null, null as ChangeHistory | null];
        for (const one of reports) {
          seconds += one.gap;
          await pass(id, one.gap);
          const signal = { signal_id: randomUUID(), generation: 1, conditions: [said("fabric.ready", one.status)] };
          await inTx((tx) => applyReadinessSignal(tx, { id, generation: 1 }, "external", signal));
          const at = new Date(seconds * 1000);
          if (history === null) history = { counted: [], changedAt: at, flappingSince: null };
          else if (one.status !== status) history = afterChange(history, at);
          status = one.status;
          const row = await rowOf(id);
          expect(row.changes).toHaveLength(history.counted.length);
          expect(isFlapping(row, new Date())).toBe(isFlapping(history, at));
        }
      }),
      { numRuns: 12 },
    );
  });
});

describe("signals in any order", () => {
  const MINUTE = 60_000;
  const signal = fc.record({
    generation: fc.constantFrom(1, 1, 1, 2),
    minute: fc.nat(2),
    conditions: fc.uniqueArray(
      fc.record({
        type: fc.constantFrom("fabric.ready", "disk.ok", "disk.waived", "os.booted"),
        status: fc.constantFrom<ConditionStatus[]>("True", "False", "Unknown"),
      }),
      { minLength: 1, maxLength: 3, selector: ({ type }) => type },
    ),
  });
  /** The signals that arrived, and two orders of their arrival, in which some arrive twice. */
  const arrivals = fc
    .array(signal, { minLength: 2, maxLength: 6 })
    .chain((sent) => fc.subarray([...sent.keys()], { minLength: 1 }).map((arrived) => ({ sent, arrived })))
    .chain(({ sent, arrived }) => {
      const order = fc
        .tuple(
          fc.shuffledSubarray(arrived, { minLength: arrived.length }),
          fc.array(fc.constantFrom(...arrived), { maxLength: 3 }),
        )
        .chain(([once, again]) => fc.shuffledSubarray([...once, ...again], { minLength: once.length + again.length }));
      return fc.record({ sent: fc.constant(sent), one: order, other: order });
    });

  it("give the same verdict, however often each of them arrives", async () => {
    const pair = [await addNode(), await addNode()] as const;
    const base = Date.now() - 60 * MINUTE;
    await fc.assert(
      fc.asyncProperty(arrivals, async ({ sent, one, other }) => {
        const verdicts: unknown[] = [];
        for (const [id, order] of [
          [pair[0], one],
          [pair[1], other],
        ] as const) {
          const ids = sent.map(() => randomUUID());
          await inTx(async (tx) => {
            await tx.execute(sql`delete from node_conditions where node_id = ${id} and type not like 'agent.%'`);
            for (const place of order) {
              const { generation, minute, conditions } = sent[place] as (typeof sent)[number];
              const at = new Date(base + minute * MINUTE);
              await applyReadinessSignal(tx, { id, generation: 1 }, "external", {
                signal_id: ids[place] as string,
                generation,
                conditions: conditions.map(({ type, status }) => said(type, status, at)),
              });
            }
          });
          const { ready, lacking } = (await read(id)).readiness;
          verdicts.push([
            ready,
            lacking.map(({ type, kind, status }: Record<string, unknown>) => ({ type, kind, status })),
          ]);
        }
        expect(verdicts[1]).toEqual(verdicts[0]);
      }),
      { numRuns: 25 },
    );
  });
});
