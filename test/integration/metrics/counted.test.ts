import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../../hub/db/client.ts";
import { sql } from "../../../hub/db/orm.ts";
import { inSavepoint, inUndoneSavepoint } from "../../../hub/db/tx.ts";
import { NodeBudgets } from "../../../hub/gateway/node-budgets.ts";
import { countChanges } from "../../../hub/metrics/count-changes.ts";
import { budgetsExceeded } from "../../../hub/metrics/counted/budgets.ts";
import type { Family } from "../../../hub/metrics/counted/family.ts";
import { nodeMoves } from "../../../hub/metrics/counted/node-moves.ts";
import { stageSeconds, workflowFailures, workflowLeasesLost } from "../../../hub/metrics/counted/workflow-runs.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { observeChanges } from "../../../hub/startup/observe-changes.ts";
import { NO_TRACES } from "../../../hub/traces/export-traces.ts";
import { Leases } from "../../../hub/workflows/engine/leases.ts";
import { NodeId, WorkflowId } from "../../../shared/ids.ts";
import { logTo } from "../../../shared/log.ts";
import { quietLog } from "../../support/log.ts";
import { nodeInService } from "../../support/node-in-service.ts";
import { type OnboardingRig, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { until } from "../../support/until.ts";

/** Other test files of the same worker count too, so each test compares two sums. */
async function sumOf({ metric }: Family): Promise<number> {
  const { values } = await metric.get();
  return values
    .filter((value) => !("metricName" in value) || String(value.metricName).endsWith("_count"))
    .reduce((sum, { value }) => sum + value, 0);
}

describe("what a hub counts", () => {
  let rig: OnboardingRig;
  beforeEach(async () => {
    rig = await startOnboardingRig({ machines: 1 });
  });
  afterEach(() => rig?.close());

  it("counts and logs a node's move after its commit, and neither after a rollback nor after an undone part", async () => {
    const lines: Record<string, unknown>[] = [];
    const database = openDatabase({
      url: rig.test.url,
      poolSize: 2,
      applicationName: "counted",
      log: quietLog,
      onCommitted: observeChanges(
        logTo({ sink: (line) => void lines.push(JSON.parse(line)), now: () => new Date(0), stackLines: 0 }, "debug"),
        NO_TRACES,
      ),
    });
    try {
      const node = await nodeInService(rig, "m-1");
      const out = { from: "active", to: "quarantined", owner: "operator" } as const;
      const before = await sumOf(nodeMoves);
      await expect(
        database.inTx(async (tx) => {
          await moveNode(tx, node, out, "undone");
          throw new Error("rolled back");
        }),
      ).rejects.toThrow("rolled back");
      await database.inTx(async (tx) => {
        await inUndoneSavepoint(tx, () => moveNode(tx, node, out, "a plan"));
        await inSavepoint(tx, async () => {
          await moveNode(tx, node, out, "a part");
          throw new Error("undone");
        }).catch(() => undefined);
      });
      expect(await sumOf(nodeMoves)).toBe(before);
      expect(lines).toEqual([]);
      await database.inTx((tx) => moveNode(tx, node, out, "It is slow"));
      expect(await sumOf(nodeMoves)).toBe(before + 1);
      expect(lines).toEqual([
        {
          time: "1970-01-01T00:00:00.000Z",
          level: "warn",
          message: "node status changed",
          node_id: node,
          hostname: "m-1",
          site_id: rig.siteId,
          from: "active",
          to: "quarantined",
          owner: "operator",
          reason: "It is slow",
          actor: "operator",
        },
      ]);
    } finally {
      await database.close();
    }
  });

  it("counts a lease that another hub took, and a lease that could not be renewed in time", async () => {
    const before = await sumOf(workflowLeasesLost);
    const leases = new Leases({ db: rig.services.db, hubId: randomUUID(), leaseSeconds: 2, log: quietLog });
    const id = WorkflowId.parse(randomUUID());
    leases.hold(
      { id, fence: 1 },
      performance.now(),
      (signal) => new Promise((done) => signal.addEventListener("abort", () => done())),
    );
    await until("the lease is lost", async () => (await sumOf(workflowLeasesLost)) === before + 1 || undefined);
    await leases.close(100);
  });

  it("counts a budget that a node exceeds", async () => {
    const before = await sumOf(budgetsExceeded);
    const budgets = new NodeBudgets();
    const node = NodeId.parse(randomUUID());
    while (budgets.ask(node, "renewal") === 0);
    expect(await sumOf(budgetsExceeded)).toBe(before + 1);
  });

  it("counts failed attempts by class, and the time in a stage only where a run ended the stage", async () => {
    const [failures, stages] = [await sumOf(workflowFailures), await sumOf(stageSeconds)];
    const at = (seconds: number) => new Date(1_000_000 + seconds * 1000);
    const change = {
      what: "stage_ended",
      workflowId: WorkflowId.parse(randomUUID()),
      kind: "onboard",
      siteId: null,
      host: {},
      stage: "wait_for_ready",
      attempt: 1,
      reason: "",
      failure: { class: "upstream_transient", code: "maas_unreachable" },
      nextStage: "wait_for_ready",
      status: "running",
      enteredAt: at(0),
      endedAt: at(5),
    } as const;
    countChanges([
      { ...change, outcome: "retrying", byRun: true },
      { ...change, outcome: "failed", byRun: true },
      { ...change, outcome: "returned", byRun: false },
    ]);
    expect((await sumOf(workflowFailures)) - failures).toBe(2);
    expect((await sumOf(stageSeconds)) - stages).toBe(1);
    await rig.services.db.execute(sql`select 1`);
  });
});
