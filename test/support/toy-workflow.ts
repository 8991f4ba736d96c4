import { randomUUID } from "node:crypto";
import { z } from "zod";
import { sql } from "../../hub/db/orm.ts";
import { workflows } from "../../hub/db/schema/index.ts";
import type { Db } from "../../hub/db/tx.ts";
import type { ClassifyError } from "../../hub/workflows/engine/execute.ts";
import type { Stage, StageRun } from "../../hub/workflows/engine/stage.ts";
import { defineWorkflow, type Workflow, type WorkflowHooks } from "../../hub/workflows/engine/workflow.ts";
import { type Failure, failure } from "../../shared/failures.ts";
import { WorkflowId } from "../../shared/ids.ts";

/** The state of a minimal workflow for tests of the workflow engine. */
export type ToyState = { value?: number; more?: number };
export type ToyContext = StageRun<unknown, ToyState>;
export type ToyStage = Stage<ToyContext, ToyState>;

export const toyStage = (name: string, run: ToyStage["run"], more: Partial<ToyStage> = {}): ToyStage => ({
  name,
  title: name,
  reentry: { rule: "from_top" },
  timeout: { seconds: () => 60, failure: () => failure("upstream_transient", "maas_timeout", `${name} timed out`) },
  retry: { maxAttempts: 3, baseSeconds: 0.01, maxSeconds: 0.02 },
  run,
  ...more,
});

export const toyWorkflow = (
  stages: readonly ToyStage[],
  more: { hooks?: WorkflowHooks; renamed?: Record<string, string> } = {},
): Workflow =>
  defineWorkflow({
    kind: "toy",
    stages,
    input: z.unknown(),
    state: z.object({ value: z.number(), more: z.number() }).partial() as z.ZodType<Partial<ToyState>>,
    renamed: more.renamed ?? {},
    buildContext: async (run) => run,
    hooks: more.hooks ?? {},
  });

export class ToyFailure extends Error {
  readonly failure: Failure;
  constructor(failed: Failure) {
    super(failed.message);
    this.failure = failed;
  }
}

export const classifyToyError: ClassifyError = (error) => ({
  failure:
    error instanceof ToyFailure
      ? error.failure
      : failure("upstream_transient", "hub_internal_error", error instanceof Error ? error.message : "unknown"),
  retryAfterSeconds: null,
});

export async function insertToy(db: Db, stage: string, state: ToyState = {}): Promise<WorkflowId> {
  const id = WorkflowId.parse(randomUUID());
  await db
    .insert(workflows)
    .values({ id, kind: "toy", status: "pending", stage, wakeAt: sql`now()`, input: {}, state });
  return id;
}
