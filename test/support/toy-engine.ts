import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll } from "vitest";
import { listStageEvents } from "../../hub/db/queries/workflow-events.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import { workflowEvents, workflows } from "../../hub/db/schema/index.ts";
import { applyVerb } from "../../hub/workflows/engine/apply-verb.ts";
import type { Verb } from "../../hub/workflows/engine/recovery.ts";
import { type RunnerOptions, startWorkflowRunner, type WorkflowRunner } from "../../hub/workflows/engine/runner.ts";
import type { Workflow } from "../../hub/workflows/engine/workflow.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import type { WorkflowStatus } from "../../shared/workflow-status.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { quietLog } from "./log.ts";
import { classifyToyError } from "./toy-workflow.ts";
import { until } from "./until.ts";

/** Gives a test file a database and workflow runners, and stops the runners after each test. */
export function useToyEngine() {
  let test: TestDatabase | undefined;
  const runners: WorkflowRunner[] = [];
  const open = (): TestDatabase => {
    if (test === undefined) throw new Error("the database is opened before the first test");
    return test;
  };
  const stop = () => Promise.all(runners.splice(0).map((runner) => runner.close()));
  beforeAll(async () => {
    test = await createTestDatabase();
  });
  afterEach(async () => {
    await stop();
    await open().database.db.delete(workflows);
    await open().database.db.delete(workflowEvents);
  });
  afterAll(() => test?.drop());
  return {
    stop,
    db: () => open().database.db,
    url: () => open().url,
    run(workflow: Workflow, more: Partial<RunnerOptions> = {}): WorkflowRunner {
      const runner = startWorkflowRunner({
        ...open().database,
        hubId: randomUUID(),
        workflows: [workflow],
        classifyError: classifyToyError,
        log: quietLog,
        pollMs: 10,
        ...more,
      });
      runners.push(runner);
      return runner;
    },
    reach: (id: WorkflowId, status: WorkflowStatus) =>
      until(
        `the workflow to be ${status}`,
        async () => {
          const row = await readWorkflow(open().database.db, id);
          return row?.status === status ? row : undefined;
        },
        { everyMs: 10 },
      ),
    events: async (id: WorkflowId) =>
      (await listStageEvents(open().database.db, id)).map((event) => `${event.stage} ${event.status}`),
    verb: (workflow: Workflow, id: WorkflowId, verb: Verb) =>
      open().database.inTx((tx) =>
        applyVerb(tx, [workflow], { workflowId: id, verb, actor: "ann", role: "admin", reason: "because" }),
      ),
  };
}

export const gate = () => Promise.withResolvers<void>();
