import { randomUUID } from "node:crypto";
import { eq, sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listStageEvents } from "../../hub/db/queries/workflow-events.ts";
import { type ClaimedWorkflow, claimWorkflows, isEnded, readWorkflow } from "../../hub/db/queries/workflows.ts";
import { nodes, type Workflow as WorkflowRow, workflows } from "../../hub/db/schema/index.ts";
import { classifyError } from "../../hub/workflows/classify-error.ts";
import { applyVerb } from "../../hub/workflows/engine/apply-verb.ts";
import { execute } from "../../hub/workflows/engine/execute.ts";
import { commitStep } from "../../hub/workflows/engine/runner.ts";
import type { Workflow } from "../../hub/workflows/engine/workflow.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { ONBOARDING_STAGES } from "../../shared/workflow-status.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";

/**
 * Every stage of every workflow, interrupted in every way that a kill or a lost lease can interrupt it. Adding a stage to a workflow adds
 * its cases. Each must converge to what an uninterrupted run ends in, with each outside effect once.
 */
let rig: OnboardingRig;
let kinds: readonly Workflow[];
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 150 });
  kinds = workflowsOf(rig.services);
});
afterAll(() => rig?.close());

const db = () => rig.test.database.db;
const kindOf = (row: WorkflowRow): Workflow => {
  const kind = kinds.find((one) => one.kind === row.kind);
  if (kind === undefined) throw new Error(`no kind ${row.kind}`);
  return kind;
};

/** One look of one hub; what it says is committed by `commit`, or lost with the hub. */
interface Look {
  readonly row: ClaimedWorkflow;
  run(): Promise<{ commit(): Promise<boolean> }>;
}

async function claim(id: WorkflowId): Promise<Look> {
  // Due and unheld, whatever the row waits for: time passes as fast as the test can.
  await db()
    .update(workflows)
    .set({ wakeAt: sql`now()`, leaseOwner: null, leaseUntil: null })
    .where(eq(workflows.id, id));
  const known = kinds.flatMap((kind) => kind.stageNames.map((stage) => `${kind.kind}/${stage}`));
  const rows = await claimWorkflows(db(), { hubId: randomUUID(), known, limit: 500, leaseSeconds: 60 });
  const row = rows.find((one) => one.id === id);
  if (row === undefined) throw new Error("the row could not be claimed");
  const signal = new AbortController().signal;
  const workflow = kindOf(row);
  return {
    row,
    run: async () => {
      const step = await execute({ workflow, row, signal, classifyError });
      if (step === null) throw new Error("the run did not count");
      return {
        commit: () =>
          rig.test.database
            .inTx((tx) => commitStep(tx, workflow, row, step))
            .catch(async (error: unknown) => {
              const move = step.commitFailed?.(error) ?? null;
              if (move === null) throw error;
              return rig.test.database.inTx((tx) => commitStep(tx, workflow, row, { move }));
            }),
      };
    },
  };
}

type Interrupt = (look: Look) => Promise<void>;
const plainly: Interrupt = async (look) => {
  expect(await (await look.run()).commit()).toBe(true);
};

const INTERRUPTS: Record<string, Interrupt> = {
  "killed before it did anything": async (look) => {
    await plainly(await claim(look.row.id));
  },
  "killed after its outside effect and before its commit": async (look) => {
    await look.run();
    await plainly(await claim(look.row.id));
  },
  "run twice, the first result arriving late": async (look) => {
    const late = await look.run();
    await plainly(await claim(look.row.id));
    expect(await late.commit()).toBe(false);
  },
  "taken over while it was still running": async (look) => {
    const other = await claim(look.row.id);
    const [late, now] = await Promise.all([look.run(), other.run()]);
    expect(await late.commit()).toBe(false);
    expect(await now.commit()).toBe(true);
  },
};

async function admit(id: WorkflowId): Promise<void> {
  await db().update(workflows).set({ status: "running" }).where(eq(workflows.id, id));
}

/** Drives the row until it ends; `at` decides how each look goes. */
async function drive(id: WorkflowId, at: (row: WorkflowRow) => Interrupt = () => plainly): Promise<WorkflowRow> {
  for (let looks = 0; looks < 2000; looks += 1) {
    const row = await readWorkflow(db(), id);
    if (row === null) throw new Error("the row is gone");
    if (isEnded(row.status)) return row;
    if (row.status === "pending") await admit(id);
    await rig.playAgent(id);
    await at(row)(await claim(id));
    // The simulated region works in the same process.
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  throw new Error("the workflow never ended");
}

async function story(id: WorkflowId): Promise<string> {
  const events = await listStageEvents(db(), id);
  return events.map((event) => `${event.stage} ${event.status}: ${event.message}`).join("\n");
}

async function expectOnce(id: WorkflowId, end: WorkflowRow): Promise<void> {
  expect(end.status, `${end.failureMessage}\n${await story(id)}`).toBe("completed");
  const systemId = (end.state as { maas_system_id: string }).maas_system_id;
  const counters = rig.maas.sim.region.state.counters[systemId];
  expect(counters).toMatchObject({ commission: 1, deploy: 1, release: 0, abort: 0 });
  expect((end.state as { roce_warnings: string[] }).roce_warnings).toEqual([]);
}

async function expectActive(nodeId: Awaited<ReturnType<OnboardingRig["start"]>>["nodeId"]): Promise<void> {
  const [node] = await db().select().from(nodes).where(eq(nodes.id, nodeId));
  expect(node).toMatchObject({ status: "active" });
  expect(node?.host).toMatch(/^\d+\./);
}

describe("an onboarding", () => {
  it("goes through its sixteen stages and makes the node active", async () => {
    const { id, nodeId, hostname } = await rig.start(++boxes);
    const end = await drive(id);
    await expectOnce(id, end);
    await expectActive(nodeId);
    const entered = (await listStageEvents(db(), id)).filter((event) =>
      ["succeeded", "skipped"].includes(event.status),
    );
    expect(entered.map((event) => event.stage)).toEqual([...ONBOARDING_STAGES]);
    expect(rig.secrets.entries.has(`kv/nodes/${nodeId}/user-data`)).toBe(false);
    expect(rig.maas.sim.region.state.machines.filter((machine) => machine.hostname === hostname)).toHaveLength(1);
  });
});

describe.each(ONBOARDING_STAGES)("stage %s", (stage) => {
  it.each(Object.keys(INTERRUPTS))("converges when %s", async (how) => {
    const interrupt = INTERRUPTS[how] ?? plainly;
    const { id, nodeId } = await rig.start(++boxes);
    const end = await drive(id, (row) => (row.stage === stage ? interrupt : plainly));
    await expectOnce(id, end);
    await expectActive(nodeId);
  });

  it("is cancelled on entry, undoing what was done and nothing that was not", async () => {
    const { id } = await rig.start(++boxes);
    let asked = false;
    const end = await drive(id, (row) => async (look) => {
      if (row.stage === stage && !asked) {
        asked = true;
        await rig.test.database.inTx((tx) =>
          applyVerb(tx, kinds, { workflowId: id, verb: "cancel", actor: "ann", role: "admin", reason: "test" }),
        );
        return plainly(await claim(id));
      }
      return plainly(look);
    });
    expect(end.status, await story(id)).toBe("cancelled");
    const systemId = (end.state as { maas_system_id?: string }).maas_system_id ?? "";
    const machine = rig.maas.sim.region.findMachine(systemId);
    const index = ONBOARDING_STAGES.indexOf(stage);
    if (index > 10) expect(machine?.status, "a deployed host is left alone").toBe(6);
    else if (index > 9) expect([4, 12]).toContain(machine?.status);
    else expect(rig.maas.sim.region.state.counters[systemId]?.deploy ?? 0).toBe(0);
  });

  it("runs out of time with its own failure, or adopts a late success, and resumes to the end", async () => {
    const { id, nodeId } = await rig.start(++boxes);
    let expired = false;
    const first = await drive(id, (row) => async (look) => {
      if (row.stage !== stage || expired) return plainly(look);
      expired = true;
      await db().update(workflows).set({ stageDeadline: sql`now() - interval '1 second'` }).where(eq(workflows.id, id));
      return plainly(await claim(id));
    });
    if (first.status !== "completed") {
      expect(first.failureCode, await story(id)).not.toBeNull();
      expect(first.nextAction).not.toBeNull();
      await rig.test.database.inTx((tx) =>
        applyVerb(tx, kinds, { workflowId: id, verb: "resume", actor: "ann", role: "admin", reason: "test" }),
      );
    }
    const end = await drive(id);
    expect(end.status, `${end.failureMessage}\n${await story(id)}`).toBe("completed");
    await expectActive(nodeId);
  });
});
