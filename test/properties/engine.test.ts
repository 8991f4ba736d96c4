import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { databaseNow } from "../../hub/db/queries/clock.ts";
import { wakeWorkflows } from "../../hub/db/queries/workflow-wakes.ts";
import { claimWorkflows, readWorkflow } from "../../hub/db/queries/workflows.ts";
import { workflows } from "../../hub/db/schema/index.ts";
import { gate, useToyEngine } from "../support/toy-engine.ts";
import { insertToy, type ToyStage, toyStage, toyWorkflow } from "../support/toy-workflow.ts";
import { until } from "../support/until.ts";

const engine = useToyEngine();
const done: ToyStage["run"] = async () => ({ kind: "done", message: "done" });

describe("the runner", () => {
  it("takes a workflow through its stages, and each commit writes its events and runs its hooks", async () => {
    const heard: string[] = [];
    const workflow = toyWorkflow(
      [
        toyStage("one", async () => ({ kind: "done", message: "1", patch: { value: 1 } })),
        toyStage("two", async ({ state }) => ({ kind: "done", message: "2", patch: { more: (state.value ?? 0) + 1 } })),
      ],
      {
        hooks: {
          onStarted: async () => void heard.push("started"),
          onEnded: async (_tx, _row, { status }) => void heard.push(status),
        },
      },
    );
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow);
    const row = await engine.reach(id, "completed");
    expect(row).toMatchObject({ state: { value: 1, more: 2 }, leaseOwner: null, wakeAt: null });
    expect(await engine.events(id)).toEqual(["one started", "one succeeded", "two started", "two succeeded"]);
    expect(heard).toEqual(["started", "completed"]);
  });

  it("shares rows between hubs without running any stage twice", async () => {
    const runs = new Map<string, number>();
    const count: ToyStage["run"] = async ({ workflowId, stage }) => {
      runs.set(`${workflowId} ${stage}`, (runs.get(`${workflowId} ${stage}`) ?? 0) + 1);
      return { kind: "done", message: "done" };
    };
    const workflow = toyWorkflow(["a", "b", "c"].map((name) => toyStage(name, count)));
    const ids = await Promise.all(Array.from({ length: 30 }, () => insertToy(engine.db(), "a")));
    engine.run(workflow);
    engine.run(workflow);
    await Promise.all(ids.map((id) => engine.reach(id, "completed")));
    expect([...runs.values()].every((times) => times === 1)).toBe(true);
    expect(runs.size).toBe(90);
  });

  it("takes over the row of a dead hub once the lease has expired", async () => {
    const reentered: boolean[] = [];
    const workflow = toyWorkflow([
      toyStage("one", async (context) => {
        reentered.push(context.reentered);
        return { kind: "done", message: "done" };
      }),
    ]);
    const id = await insertToy(engine.db(), "one");
    await engine.db().update(workflows).set({ status: "running" }).where(eq(workflows.id, id));
    const dead = { hubId: randomUUID(), known: ["toy/one"], limit: 10, leaseSeconds: 0.3 };
    expect(await claimWorkflows(engine.db(), dead)).toHaveLength(1);
    engine.run(workflow);
    await engine.reach(id, "completed");
    expect(reentered).toEqual([true]);
  });

  it("drops the result of a run whose row another hub took, and aborts its signal", async () => {
    const entered = gate();
    const aborted = gate();
    const workflow = toyWorkflow([
      toyStage("one", async ({ signal }) => {
        entered.resolve();
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        aborted.resolve();
        return { kind: "done", message: "too late" };
      }),
    ]);
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow, { leaseSeconds: 3 });
    await entered.promise;
    // The test writes the workflow's row as another hub would that takes over the workflow.
    const taken = { leaseOwner: randomUUID(), leaseUntil: sql`now() + interval '1 hour'`, fence: sql`fence + 1` };
    await engine.db().update(workflows).set(taken).where(eq(workflows.id, id));
    await aborted.promise;
    await engine.stop();
    expect(await readWorkflow(engine.db(), id)).toMatchObject({ status: "running", stage: "one" });
    expect(await engine.events(id)).not.toContain("one succeeded");
  });

  it("renews the lease of a long run", async () => {
    let runs = 0;
    const entered = gate();
    const ended = gate();
    const workflow = toyWorkflow([
      toyStage("one", async () => {
        runs += 1;
        entered.resolve();
        await ended.promise;
        return { kind: "done", message: "done" };
      }),
    ]);
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow, { leaseSeconds: 4 });
    engine.run(workflow, { leaseSeconds: 4 });
    await entered.promise;
    const leased = (await readWorkflow(engine.db(), id))?.leaseUntil;
    await until("the first lease to be over", async () =>
      leased != null && (await databaseNow(engine.db())) > leased ? true : undefined,
    );
    ended.resolve();
    await engine.reach(id, "completed");
    expect(runs).toBe(1);
  });

  it("gives its leases back when it stops, so the next hub continues at once", async () => {
    const entered = gate();
    let runs = 0;
    const workflow = toyWorkflow([
      toyStage("one", async ({ signal }) => {
        runs += 1;
        if (runs > 1) return { kind: "done", message: "done" };
        entered.resolve();
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        return { kind: "done", message: "from the stopped hub" };
      }),
    ]);
    const id = await insertToy(engine.db(), "one");
    const first = engine.run(workflow, { leaseSeconds: 60, drainMs: 100 });
    await entered.promise;
    await first.close();
    engine.run(workflow);
    await engine.reach(id, "completed");
    expect(runs).toBe(2);
  });

  it("does not lose a wake-up that comes while the stage runs", async () => {
    let looks = 0;
    const workflow = toyWorkflow([
      toyStage("one", async () => {
        looks += 1;
        if (looks === 3) return { kind: "done", message: "seen" };
        // With its first wait, the workflow subscribes to wake-ups with the key `thing`. A wake-up with the key `thing` comes during the second run
        // of the stage `one`, just before the engine commits the run.
        if (looks === 2) await wakeWorkflows(engine.db(), ["thing"]);
        return { kind: "wait", reason: "the thing", seconds: 50, on: "thing" };
      }),
    ]);
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow);
    await engine.reach(id, "completed");
    expect(looks).toBe(3);
  });

  it("wakes a waiting workflow at once", async () => {
    let ready = false;
    const workflow = toyWorkflow([
      toyStage("one", async () =>
        ready ? { kind: "done", message: "seen" } : { kind: "wait", reason: "the thing", seconds: 50, on: "thing" },
      ),
    ]);
    const id = await insertToy(engine.db(), "one");
    // When a stage begins to wait for wake-ups, the engine repeats the stage after a second. The test sets `waitOn` before the stage's first run, so
    // that only `wakeWorkflows` can cause the second run.
    await engine.db().update(workflows).set({ waitOn: "thing" }).where(eq(workflows.id, id));
    engine.run(workflow, { databaseUrl: engine.url(), pollMs: 3_600_000 });
    await until("the first run is over", async () => {
      const row = await readWorkflow(engine.db(), id);
      return row?.waitReason !== null && row?.leaseOwner === null ? true : undefined;
    });
    ready = true;
    await wakeWorkflows(engine.db(), ["thing"]);
    await engine.reach(id, "completed");
  });

  it("leaves an unknown stage to a hub that knows it, and finds a renamed stage", async () => {
    const id = await insertToy(engine.db(), "old name");
    const stranger = await insertToy(engine.db(), "of a newer version");
    engine.run(toyWorkflow([toyStage("new name", done)], { renamed: { "old name": "new name" } }));
    await engine.reach(id, "completed");
    expect(await readWorkflow(engine.db(), stranger)).toMatchObject({ status: "running", fence: 0 });
  });
});
