import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inArray } from "../../../hub/db/orm.ts";
import { isEnded, readWorkflow } from "../../../hub/db/queries/workflows.ts";
import { type Workflow as WorkflowRow, workflowEvents, workflows } from "../../../hub/db/schema/index.ts";
import { applyVerb } from "../../../hub/workflows/engine/apply-verb.ts";
import type { Verb } from "../../../hub/workflows/engine/recovery.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import type { WorkflowServices } from "../../../hub/workflows/services.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import { nextVerbOf } from "../../properties/converge.ts";
import { countedOf, SCENARIOS, type Scenario, type Subject } from "../../properties/scenarios.ts";
import { LONG_WAIT_MS, until } from "../../support/until.ts";
import { RECORD_FILES, readRecord } from "../../upgrade/load-record.ts";
import { type TakenOver, takeOver } from "../../upgrade/take-over.ts";
import type { UpgradeRecord } from "../../upgrade/upgrade-record.ts";

const KINDS = workflowsOf({} as WorkflowServices);
/** The scenario of a workflow kind whose agent and whose end nothing disturbs. */
const scenarioOf = ({ kind }: Pick<WorkflowRow, "kind">): Scenario => {
  const scenario = SCENARIOS.find((one) => one.kind === kind);
  if (scenario === undefined) throw new Error(`no scenario of the kind ${kind}`);
  return scenario;
};
const RECORDS = RECORD_FILES.map((file) => ({ file, record: readRecord(file) }));
const isOpen = ({ status }: Pick<WorkflowRow, "status">): boolean => status === "running" || status === "pending";

describe("the upgrade records", () => {
  it.each(KINDS)("hold the kind $kind at each of its stages", ({ kind, stageNames }) => {
    const rows = RECORDS.flatMap(
      ({ record }) =>
        record.tables["workflows"] as { kind: string; stage: string; status: string; lease_owner: string | null }[],
    );
    const held = new Set(
      rows
        .filter((row) => row.kind === kind && row.status === "running" && row.lease_owner !== null)
        .map(({ stage }) => stage),
    );
    expect(
      stageNames.filter((stage) => !held.has(stage)),
      "stages that no record holds: run `npm run upgrade:record` and commit the new file of test/upgrade/records",
    ).toEqual([]);
  });
});

describe.each(RECORDS)("the state that the dead hub of $file left", ({ record }) => {
  let world: TakenOver;
  let rows: WorkflowRow[];
  beforeAll(async () => {
    world = await takeOver(record);
    rows = await world.rig.services.db.select().from(workflows);
  });
  afterAll(async () => {
    await world?.close();
  });

  const subjectOf = (id: WorkflowId): Subject => {
    const subject = world.subjects.get(id);
    if (subject === undefined) throw new Error(`workflow ${id} has no node`);
    return subject;
  };
  const ended = (ids: readonly WorkflowId[]): Promise<WorkflowRow[]> =>
    until(
      `${ids.length} workflows to end`,
      async () => {
        const { db } = world.rig.services;
        const now = await db
          .select()
          .from(workflows)
          .where(
            inArray(
              workflows.id,
              rows.filter(lasts).map(({ id }) => id),
            ),
          );
        // The test plays the agents of all workflows, because a workflow that waits for its agent occupies a place of the site.
        for (const row of now.filter(waitsForAgent)) await scenarioOf(row).play(world.rig, row.id, row);
        const asked = now.filter(({ id }) => ids.includes(id));
        const left = asked.filter(({ status }) => !isEnded(status));
        if (left.length === 0) return asked;
        throw new Error(left.map(told).join("; "));
      },
      { timeoutMs: 2 * LONG_WAIT_MS, everyMs: 200 },
    );
  const verb = (workflowId: WorkflowId, which: Verb) =>
    world.rig.services.inTx((tx) =>
      applyVerb(tx, workflowsOf(world.rig.services), {
        workflowId,
        verb: which,
        actor: "ann",
        role: "admin",
        reason: "upgraded",
      }),
    );

  it("has each kind at each stage that the old version knew", async () => {
    const { db } = world.rig.services;
    for (const kind of new Set(rows.filter(isOpen).map((row) => row.kind))) {
      const own = rows.filter((row) => row.kind === kind);
      const done = own.filter(({ status, startedAt }) => status === "completed" && startedAt !== null);
      expect(done, kind).not.toEqual([]);
      const passed = await db
        .selectDistinct({ stage: workflowEvents.stage })
        .from(workflowEvents)
        .where(
          inArray(
            workflowEvents.workflowId,
            done.map(({ id }) => id),
          ),
        );
      const open = own.filter(isOpen);
      expect([...new Set(open.map(({ stage }) => stage))]).toEqual(
        expect.arrayContaining(passed.map(({ stage }) => stage)),
      );
      expect(open.filter((row) => row.leaseOwner !== null).length, kind).toBeGreaterThan(passed.length);
    }
  });

  it("continues from every stage to the end, and nothing is done twice", async () => {
    world.start();
    const open = rows.filter((row) => isOpen(row) && row.stopRequest === null);
    for (const row of await ended(open.map(({ id }) => id))) {
      expect(row, row.failureMessage ?? "").toMatchObject({ status: "completed" });
      expect({ kind: row.kind, id: row.id, ...countedOf(world.rig, row) }).toEqual({
        kind: row.kind,
        id: row.id,
        ...outsideOf(record, row),
      });
      await scenarioOf(row).expectEnd(world.rig, subjectOf(row.id));
    }
    for (const done of rows.filter(({ status }) => status === "completed"))
      expect(await readWorkflow(world.rig.services.db, done.id), "left alone").toEqual(done);
  });

  it("obeys each cancel that the dead hub had not begun", async () => {
    const asked = rows.filter(({ stopRequest }) => stopRequest !== null);
    for (const row of await ended(asked.map(({ id }) => id))) {
      expect(row, row.failureMessage ?? "").toMatchObject({ status: "cancelled" });
      await scenarioOf(row).expectCancelled(world.rig, subjectOf(row.id), row);
    }
  });

  it("finishes its compensations, and its failed workflows complete by the recommended verb", async () => {
    const undoing = rows.filter((row) => row.status === "compensating");
    expect(undoing).not.toEqual([]);
    for (const row of await ended(undoing.map(({ id }) => id))) {
      expect(row.status, row.failureMessage ?? "").toMatch(/^failed_/);
      const { deploy, release, abort } = countedOf(world.rig, row);
      expect(deploy - release - abort, "deploys that were not taken back").toBe(0);
    }
    let failed = rows
      .filter(lasts)
      .filter((row) => !isOpen(row))
      .map(({ id }) => id);
    expect(failed.length).toBeGreaterThan(2);
    for (let verbs = 0; failed.length > 0; verbs += 1) {
      expect(verbs, failed.join()).toBeLessThan(3);
      for (const row of await ended(failed)) await verb(row.id, nextVerbOf(row));
      failed = (await ended(failed)).filter(({ status }) => status !== "completed").map(({ id }) => id);
    }
  });
});

/** Tells where a workflow is and since when, so that a workflow that stands still is told from one of many that are slow. */
const told = ({ kind, id, status, stage, stageEnteredAt, waitReason }: WorkflowRow): string =>
  `${kind} ${id} is ${status} in ${stage} since ${stageEnteredAt?.toISOString()}: ${waitReason}`;

/** False for a workflow that has ended, or that waits for MAAS, which the simulated region tells the hubs. */
const waitsForAgent = ({ status, waitOn }: WorkflowRow): boolean => !isEnded(status) && !waitOn?.startsWith("maas:");

/** False for a workflow to which nothing more happens. */
const lasts = ({ status }: WorkflowRow): boolean => !["completed", "cancelled", "reconciled"].includes(status);

const outsideOf = (record: UpgradeRecord, row: WorkflowRow) =>
  record.outside?.[row.id] ?? SCENARIOS.find(({ kind }) => kind === row.kind)?.outside;
