import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { listStageEvents } from "../../hub/db/queries/workflow-events.ts";
import { claimWorkflows, readWorkflow } from "../../hub/db/queries/workflows.ts";
import { auditLogs, workflows } from "../../hub/db/schema/index.ts";
import { failure } from "../../shared/failures.ts";
import { gate, useToyEngine } from "../support/toy-engine.ts";
import { insertToy, ToyFailure, type ToyStage, toyStage, toyWorkflow } from "../support/toy-workflow.ts";
import { until } from "../support/until.ts";

const engine = useToyEngine();
/** Makes a stage whose first run waits for `proceed` and returns `first`, while each later run returns the verdict done. */
function heldStage(name: string, first: Awaited<ReturnType<ToyStage["run"]>>) {
  const [entered, proceed] = [gate(), gate()];
  const undone: string[] = [];
  let runs = 0;
  const run: ToyStage["run"] = async () => {
    runs += 1;
    if (runs > 1) return { kind: "done", message: "done" };
    entered.resolve();
    await proceed.promise;
    return first;
  };
  const stage = toyStage(name, run, {
    compensate: async ({ state }, cause) => {
      undone.push(`${cause} ${state.value}`);
      return { kind: "done", message: "undone" };
    },
  });
  return { stage, entered: entered.promise, proceed: () => proceed.resolve(), undone };
}

const done: ToyStage["run"] = async () => ({ kind: "done", message: "done" });

describe("the engine after a failure, a timeout or a cancel", () => {
  const transient = failure("upstream_transient", "maas_bad_answer", "odd");
  const fatal = failure("deploy_cloud_init_failure", "deploy_failed", "no");

  it("retries when a stage throws, then ends as the failure class says", async () => {
    let runs = 0;
    const workflow = toyWorkflow([
      toyStage("one", async () => {
        runs += 1;
        throw new ToyFailure(transient);
      }),
    ]);
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow);
    const row = await engine.reach(id, "failed_retryable");
    expect(runs).toBe(3);
    expect(row).toMatchObject({ failureCode: "maas_bad_answer", attempt: 3 });
    expect(row.nextAction).toContain("retry");
    expect(await engine.events(id)).toEqual(["one started", "one retrying", "one retrying", "one failed"]);
  });

  it("turns a refusal inside a stage's commit into a failure of the stage, and writes nothing of the commit", async () => {
    const workflow = toyWorkflow([
      toyStage("one", async () => ({
        kind: "done",
        message: "done",
        patch: { value: 9 },
        commit: async (tx) => {
          await tx.execute(sql`insert into onboarding_batches (site_id) values (gen_random_uuid())`);
          throw new ToyFailure(failure("state_ambiguity", "node_state_conflict", "refused"));
        },
      })),
    ]);
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow);
    expect(await engine.reach(id, "failed_manual_intervention")).toMatchObject({
      failureCode: "node_state_conflict",
      state: {},
    });
    const { rows } = await engine.db().execute<{ n: string }>(sql`select count(*) as n from onboarding_batches`);
    expect(Number(rows[0]?.n)).toBe(0);
  });

  it("times out a wait, but adopts a late success", async () => {
    const waiting = { kind: "wait", reason: "x", seconds: 0.01 } as const;
    let late = false;
    const timeout = { seconds: () => 0.05, failure: () => transient };
    const failing = toyStage("one", async () => waiting, { timeout });
    const adopting = toyStage("two", async () => waiting, {
      timeout,
      reentry: {
        rule: "observe_first",
        observe: async ({ now, deadline }) => {
          late = now >= deadline;
          return late ? { kind: "done", message: "late, but there" } : { kind: "not_started" };
        },
      },
    });
    const workflow = toyWorkflow([failing, adopting]);
    const lost = await insertToy(engine.db(), "one");
    const adopted = await insertToy(engine.db(), "two");
    engine.run(workflow);
    expect(await engine.reach(lost, "failed_retryable")).toMatchObject({ failureCode: "maas_bad_answer", attempt: 1 });
    await engine.reach(adopted, "completed");
    expect(late).toBe(true);
  });

  it("compensates in reverse order, can wait while doing so, and ends with the failure", async () => {
    const undone: string[] = [];
    let looks = 0;
    const undo = (name: string): Partial<ToyStage> => ({
      compensate: async (_context, cause) => {
        looks += 1;
        if (name === "two" && looks === 1) return { kind: "wait", reason: "releasing", seconds: 0.01 };
        undone.push(`${name} ${cause}`);
        return { kind: "done", message: "undone" };
      },
    });
    const failing = toyStage("three", async () => ({ kind: "failed", failure: fatal }), {
      overrides: { deploy_cloud_init_failure: { retry: "never" } },
    });
    const workflow = toyWorkflow([toyStage("one", done, undo("one")), toyStage("two", done, undo("two")), failing]);
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow);
    expect(await engine.reach(id, "failed_retryable")).toMatchObject({ failureCode: "deploy_failed", stage: "three" });
    expect(undone).toEqual(["two failure", "one failure"]);
    expect((await engine.events(id)).slice(-4)).toEqual([
      "three failed",
      "two waiting",
      "two compensated",
      "one compensated",
    ]);
  });

  it("retries a compensation whose own commit is refused, until the compensation's deadline", async () => {
    let tries = 0;
    const refusing = toyStage("one", async () => ({ kind: "failed", failure: fatal }), {
      overrides: { deploy_cloud_init_failure: { retry: "never" } },
      timeout: { seconds: () => 3, failure: () => transient },
      compensate: async () => ({
        kind: "done",
        message: "undone",
        commit: async () => {
          tries += 1;
          throw new ToyFailure(failure("upstream_transient", "hub_internal_error", "the record refused"));
        },
      }),
    });
    const workflow = toyWorkflow([refusing]);
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow);
    const row = await engine.reach(id, "failed_manual_intervention");
    expect(row).toMatchObject({
      failureCode: "deploy_failed",
      evidence: { compensation_failed: "the record refused" },
    });
    expect(tries).toBeGreaterThan(1);
    expect(await engine.events(id)).toContain("one retrying");
  });

  it("applies a cancel during a call at the call's commit: the result is kept and then compensated", async () => {
    const entered = gate();
    const proceed = gate();
    let seen: number | undefined;
    const one = toyStage(
      "one",
      async () => {
        entered.resolve();
        await proceed.promise;
        return { kind: "done", message: "created", patch: { value: 42 } };
      },
      {
        compensate: async ({ state }) => {
          seen = state.value;
          return { kind: "done", message: "removed" };
        },
      },
    );
    const workflow = toyWorkflow([
      one,
      toyStage("two", async () => ({ kind: "wait", reason: "for ever", seconds: 60 })),
    ]);
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow);
    await entered.promise;
    expect((await engine.verb(workflow, id, "cancel")).status).toBe("running");
    proceed.resolve();
    expect(await engine.reach(id, "cancelled")).toMatchObject({ failureClass: null, stopRequest: null });
    expect(seen).toBe(42);
  });

  it("delays restart_clean and a freeze until the current call ends, then compensates its result", async () => {
    const one = heldStage("one", { kind: "done", message: "created", patch: { value: 42 } });
    const two = toyStage("two", async () => ({ kind: "wait", reason: "for ever", seconds: 60 }));
    const workflow = toyWorkflow([one.stage, two]);
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow);
    await one.entered;
    for (const verb of ["mark_manual_intervention", "restart_clean", "restart_clean"] as const)
      expect((await engine.verb(workflow, id, verb)).status).toBe("running");
    expect(await readWorkflow(engine.db(), id)).toMatchObject({ stopRequest: { verb: "restart_clean" } });
    expect(one.undone).toEqual([]);
    one.proceed();
    await until("the second life to get to its second stage", async () =>
      (await readWorkflow(engine.db(), id))?.stage === "two" && one.undone.length > 0 ? true : undefined,
    );
    expect(one.undone).toEqual(["restart 42"]);
    expect(await readWorkflow(engine.db(), id)).toMatchObject({ stopRequest: null });
  });

  it("cancels a workflow that fails in the same run that the cancel waited for", async () => {
    for (const failed of [fatal, failure("hardware_mismatch", "boss_disk_missing", "no disk")]) {
      const ends: string[] = [];
      const one = heldStage("one", { kind: "failed", failure: failed, patch: { value: 7 } });
      const workflow = toyWorkflow([{ ...one.stage, overrides: { [failed.class]: { retry: "never" } } }], {
        hooks: { onEnded: async (_tx, _row, { status }) => void ends.push(status) },
      });
      const id = await insertToy(engine.db(), "one");
      engine.run(workflow);
      await one.entered;
      await engine.verb(workflow, id, "cancel");
      await expect(engine.verb(workflow, id, "restart_clean")).rejects.toMatchObject({ code: "verb_not_allowed" });
      one.proceed();
      expect(await engine.reach(id, "cancelled")).toMatchObject({ failureClass: null, stopRequest: null });
      expect(one.undone).toEqual(["cancel 7"]);
      expect(ends).toEqual(["cancelled"]);
      await engine.stop();
    }
  });

  it("carries out a verb that a dead hub left pending, without running the stage again", async () => {
    let runs = 0;
    const one = toyStage("one", async () => {
      runs += 1;
      return { kind: "done", message: "done" };
    });
    const workflow = toyWorkflow([one]);
    const id = await insertToy(engine.db(), "one");
    await engine.db().update(workflows).set({ status: "running" }).where(eq(workflows.id, id));
    const dead = { hubId: randomUUID(), known: ["toy/one"], limit: 10, leaseSeconds: 0.3 };
    expect(await claimWorkflows(engine.db(), dead)).toHaveLength(1);
    expect((await engine.verb(workflow, id, "mark_manual_intervention")).status).toBe("running");
    engine.run(workflow);
    const row = await engine.reach(id, "failed_manual_intervention");
    expect(row).toMatchObject({ failureCode: "stopped_by_operator", stopRequest: null });
    expect(row.failureMessage).toContain("by ann: because");
    expect(runs).toBe(0);
  });

  it("obeys a cancel that a hub of an older version has written", async () => {
    const workflow = toyWorkflow([toyStage("one", async () => ({ kind: "wait", reason: "for ever", seconds: 60 }))]);
    const id = await insertToy(engine.db(), "one");
    await engine.db().update(workflows).set({ cancelRequestedAt: sql`now()` }).where(eq(workflows.id, id));
    engine.run(workflow);
    expect(await engine.reach(id, "cancelled")).toMatchObject({ cancelRequestedAt: null });
  });
});

describe("the engine on operator verbs", () => {
  it("retries a failed workflow at its stage, once under a double click, with an audit row per click", async () => {
    let healed = false;
    const one = toyStage("one", async ({ reentered }) =>
      healed
        ? { kind: "done", message: `reentered ${reentered}` }
        : { kind: "failed", failure: failure("hardware_mismatch", "boss_disk_missing", "no disk") },
    );
    const workflow = toyWorkflow([one]);
    const id = await insertToy(engine.db(), "one");
    const runner = engine.run(workflow);
    await engine.reach(id, "failed_manual_intervention");
    healed = true;
    await runner.close();
    const [first, second] = [await engine.verb(workflow, id, "retry"), await engine.verb(workflow, id, "retry")];
    expect([first.status, second.status]).toEqual(["pending", "pending"]);
    expect(second.fence).toBe(first.fence);
    engine.run(workflow);
    await engine.reach(id, "completed");
    const events = await listStageEvents(engine.db(), id);
    expect(events.at(-1)?.message).toBe("reentered true");
    const audits = await engine
      .db()
      .select()
      .from(auditLogs)
      .where(eq(auditLogs.target, `workflows/${id}`));
    expect(audits.map((row) => (row.details as { effect: string }).effect)).toEqual(["retry_stage", "already"]);
  });

  it("compensates everything and starts from the first stage on restart_clean", async () => {
    let attempts = 0;
    const one = toyStage("one", async () => ({ kind: "done", message: "made", patch: { value: 1 } }), {
      compensate: async (_context, cause) => ({ kind: "done", message: `undone by ${cause}` }),
    });
    const two = toyStage("two", async ({ state }) => {
      attempts += 1;
      if (attempts > 1) return { kind: "done", message: `value ${state.value}` };
      return { kind: "failed", failure: failure("hardware_mismatch", "boss_disk_missing", "no disk") };
    });
    const workflow = toyWorkflow([one, two]);
    const id = await insertToy(engine.db(), "one", { more: 5 });
    engine.run(workflow);
    await engine.reach(id, "failed_manual_intervention");
    expect((await engine.verb(workflow, id, "restart_clean")).status).toBe("compensating");
    expect(await engine.reach(id, "completed")).toMatchObject({ state: { value: 1 } });
    expect((await listStageEvents(engine.db(), id)).map((event) => event.message)).toContain("undone by restart");
  });

  it("ends as reconciled when the stage adopts an existing result", async () => {
    let there = false;
    const one = toyStage(
      "one",
      async () => ({ kind: "failed", failure: failure("state_ambiguity", "machine_locked", "?") }),
      {
        reentry: {
          rule: "observe_first",
          observe: async () => (there ? { kind: "done", message: "there" } : { kind: "not_started" }),
        },
      },
    );
    const workflow = toyWorkflow([one]);
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow);
    await engine.reach(id, "failed_manual_intervention");
    there = true;
    await engine.verb(workflow, id, "adopt");
    await engine.reach(id, "reconciled");
  });

  it("compensates a workflow that is cancelled or restarted while it is pending again after a retry", async () => {
    const undone: string[] = [];
    const one = toyStage("one", async () => ({ kind: "done", message: "made", patch: { value: 1 } }), {
      compensate: async ({ state }, cause) => {
        undone.push(`${cause} ${state.value}`);
        return { kind: "done", message: "undone" };
      },
    });
    let healed = false;
    const two = toyStage("two", async () =>
      healed
        ? { kind: "done", message: "done" }
        : { kind: "failed", failure: failure("hardware_mismatch", "boss_disk_missing", "no disk") },
    );
    const workflow = toyWorkflow([one, two]);
    const [cancelled, restarted] = [await insertToy(engine.db(), "one"), await insertToy(engine.db(), "one")];
    const runner = engine.run(workflow);
    for (const id of [cancelled, restarted]) await engine.reach(id, "failed_manual_intervention");
    await runner.close();
    for (const id of [cancelled, restarted]) expect((await engine.verb(workflow, id, "retry")).status).toBe("pending");
    expect((await engine.verb(workflow, cancelled, "cancel")).status).toBe("compensating");
    expect((await engine.verb(workflow, restarted, "restart_clean")).status).toBe("compensating");
    healed = true;
    engine.run(workflow);
    await engine.reach(cancelled, "cancelled");
    await engine.reach(restarted, "completed");
    expect(undone.sort()).toEqual(["cancel 1", "restart 1"]);
  });

  it("ends as reconciled when adopt is asked for while the workflow is pending again after a resume", async () => {
    let healed = false;
    const one = toyStage("one", async () =>
      healed
        ? { kind: "done", message: "there" }
        : { kind: "failed", failure: failure("state_ambiguity", "machine_locked", "?") },
    );
    const workflow = toyWorkflow([one]);
    const id = await insertToy(engine.db(), "one");
    const runner = engine.run(workflow);
    await engine.reach(id, "failed_manual_intervention");
    await runner.close();
    healed = true;
    await engine.verb(workflow, id, "resume");
    await engine.verb(workflow, id, "adopt");
    engine.run(workflow);
    await engine.reach(id, "reconciled");
  });

  it("refuses the verbs that the verb table forbids", async () => {
    const workflow = toyWorkflow([toyStage("one", done)]);
    const id = await insertToy(engine.db(), "one");
    engine.run(workflow);
    await engine.reach(id, "completed");
    await expect(engine.verb(workflow, id, "retry")).rejects.toMatchObject({ code: "verb_not_allowed" });
    await expect(engine.verb(workflow, id, "cancel")).rejects.toMatchObject({ code: "verb_not_allowed" });
  });
});
