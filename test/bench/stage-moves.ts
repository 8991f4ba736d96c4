import { randomUUID } from "node:crypto";
import { sql } from "drizzle-orm";
import { z } from "zod";
import { openDatabase } from "../../hub/db/client.ts";
import { workflowEvents, workflows } from "../../hub/db/schema/index.ts";
import { createLog } from "../../hub/log.ts";
import { startWorkflowRunner } from "../../hub/workflows/engine/runner.ts";
import type { Stage, StageRun } from "../../hub/workflows/engine/stage.ts";
import { defineWorkflow } from "../../hub/workflows/engine/workflow.ts";
import { failure } from "../../shared/failures.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { until } from "../support/until.ts";
import type { Figure } from "./figure.ts";

const STAGES = 16;
const WORKFLOWS = 400;
const Facts = z.record(z.string(), z.unknown());
type Run = StageRun<Record<string, unknown>, Record<string, unknown>>;

/** A stage that does nothing outside: what is left is the engine's own price of a move. */
const idle = (name: string): Stage<Run, Record<string, unknown>> => ({
  name,
  title: "Does nothing",
  reentry: { rule: "from_top" },
  timeout: {
    seconds: () => 3600,
    failure: () => failure("upstream_transient", "hub_internal_error", "The bench's stage ran out of time."),
  },
  retry: { maxAttempts: 1, baseSeconds: 1, maxSeconds: 1 },
  run: async () => ({ kind: "done", message: "Nothing to do" }),
});

const workflow = defineWorkflow<Run, Record<string, unknown>, Record<string, unknown>>({
  kind: "bench",
  stages: Array.from({ length: STAGES }, (_, index) => idle(`stage_${index + 1}`)),
  input: Facts,
  state: Facts,
  renamed: {},
  buildContext: async (run) => run,
  hooks: {},
});

/** How fast the engine moves rows when the outside costs nothing: claim, run, one transaction, next stage. */
export async function measureStageMoves(databaseUrl: string): Promise<Figure[]> {
  const log = createLog("error");
  const database = openDatabase({ url: databaseUrl, poolSize: 12, applicationName: "muster-bench", log });
  const ids = Array.from({ length: WORKFLOWS }, () => randomUUID() as WorkflowId);
  await database.inTx(async (tx) => {
    await tx.insert(workflows).values(
      ids.map((id) => ({
        id,
        kind: "bench",
        status: "pending" as const,
        stage: "stage_1",
        input: {},
        wakeAt: sql`now()`,
      })),
    );
  });
  const began = performance.now();
  const runner = startWorkflowRunner({
    db: database.db,
    inTx: database.inTx,
    hubId: randomUUID(),
    workflows: [workflow],
    classifyError: () => ({
      failure: failure("upstream_transient", "hub_internal_error", "bench"),
      retryAfterSeconds: null,
    }),
    log,
    databaseUrl,
    concurrency: 32,
  });
  await until(
    "all bench workflows are completed",
    async () => {
      const [row] = await database.db
        .select({ open: sql<number>`count(*)::int` })
        .from(workflows)
        .where(sql`status <> 'completed'`);
      return row?.open === 0 ? true : undefined;
    },
    { timeoutMs: 600_000, everyMs: 100 },
  );
  const seconds = (performance.now() - began) / 1000;
  await runner.close();
  const [events] = await database.db
    .select({ count: sql<number>`count(*)::int` })
    .from(workflowEvents)
    .where(sql`status = 'succeeded'`);
  await database.close();
  const moves = events?.count ?? 0;
  if (moves !== WORKFLOWS * STAGES) throw new Error(`expected ${WORKFLOWS * STAGES} moves, the history holds ${moves}`);
  return [
    {
      name: "stage moves per second, one hub",
      value: moves / seconds,
      unit: "moves/s",
      note: `${WORKFLOWS} workflows x ${STAGES} stages without outside work, 32 at once, fsync on`,
    },
  ];
}
