import { z } from "zod";
import type { Evidence, Failure } from "../../../shared/failures.ts";
import { admitAll, type ClaimedWorkflow, type WorkflowTransition } from "../../db/queries/workflows.ts";
import type { Workflow as WorkflowRow } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import type { Absence } from "./absence.ts";
import type {
  Compensation,
  CompensationCause,
  Observation,
  Outcome,
  RetryPolicy,
  Stage,
  StageOverrides,
  StageRun,
} from "./stage.ts";
import { deadlineAfter } from "./timeout.ts";

export type Facts = Readonly<Record<string, unknown>>;

export type WorkflowEnd = Pick<WorkflowTransition, "status" | "failure" | "leaves">;

/** The engine calls each hook in the transaction that records the start or end of a workflow. */
export interface WorkflowHooks {
  /** The engine calls `onStarted` when it starts a pending workflow for the first time. */
  onStarted?(tx: Tx, row: WorkflowRow): Promise<void>;
  /** The engine calls `onEnded` when a workflow completes, fails or is cancelled. */
  onEnded?(tx: Tx, row: WorkflowRow, end: WorkflowEnd): Promise<void>;
}

export interface WorkflowDefinition<Context extends StageRun<Input, State>, Input, State extends Facts> {
  readonly kind: string;
  readonly stages: readonly Stage<Context, State>[];
  readonly input: z.ZodType<Input>;
  /** All facts of a workflow's state are optional, because the row of an older version may lack a new fact (decision W3). */
  readonly state: z.ZodType<Partial<State>>;
  /** Maps the old name of a stage to the stage that replaced it (decision W3). */
  readonly renamed: Readonly<Record<string, string>>;
  /**
   * Reads the data that the workflow's stages need, once for each run of a stage. The object that `buildContext` returns also contains the fields of
   * its argument `run`.
   */
  buildContext(run: StageRun<Input, State>): Promise<Context>;
  readonly hooks: WorkflowHooks;
  /**
   * Returns the workflow's last observation as evidence of a failure (lifecycle 4.12). If the last observation and the stage's own evidence have a
   * key in common, the engine keeps the stage's value.
   */
  observedEvidence?(context: Context): Promise<Evidence>;
  /** Returns the stage at which `retry` and `resume` continue, by default the failed stage. */
  restartPoint?(verb: "retry" | "resume", stage: string): string;
  /**
   * Returns the stage at which `rerun` begins if the workflow's first stages cannot begin in this state, for example because the host is off, and
   * null if `rerun` begins at the first stage.
   */
  rerunPoint?(state: Partial<State>): string | null;
  /**
   * Facts that count how often the workflow has tried to recover by itself. When an operator continues the workflow, the engine deletes the facts in
   * `forgottenOnRecovery`, because the operator has corrected the failure's cause.
   */
  readonly forgottenOnRecovery?: readonly (keyof State & string)[];
  /** Facts of the workflow's state that the verb `rerun` deletes, in addition to `forgottenOnRecovery`. */
  readonly forgottenOnRerun?: readonly (keyof State & string)[];
  /**
   * Starts pending workflows as far as the limits allow, and returns the rows as they were before the start (lifecycle 4.4). A workflow kind without
   * `admit` starts all its pending workflows.
   */
  admit?(tx: Tx): Promise<WorkflowRow[]>;
}

export interface BoundStage {
  readonly name: string;
  readonly retry: RetryPolicy;
  readonly overrides: StageOverrides | undefined;
  readonly deadline: Date;
  timeoutFailure(): Failure | Promise<Failure>;
  observedEvidence(): Promise<Evidence>;
  readonly observe: (() => Promise<Observation<Facts>>) | null;
  run(): Promise<Outcome<Facts>>;
  readonly compensate: ((cause: CompensationCause) => Promise<Compensation<Facts>>) | null;
}

/** A workflow kind as the engine uses it, without the types of its input, state and context. */
export interface Workflow {
  readonly kind: string;
  readonly stageNames: readonly string[];
  readonly titles: Readonly<Record<string, string>>;
  readonly compensable: readonly string[];
  readonly hooks: WorkflowHooks;
  readonly forgottenOnRecovery: readonly string[];
  readonly forgottenOnRerun: readonly string[];
  admit(tx: Tx): Promise<WorkflowRow[]>;
  /** All stage names that rows of the workflow kind may hold, including the old names of renamed stages. */
  readonly knownNames: readonly string[];
  /** Returns the present name of a stage; null for a name that this version of the hub does not know. */
  nameToday(stored: string): string | null;
  restartPoint(verb: "retry" | "resume", stage: string): string;
  rerunPoint(state: Facts): string | null;
  bind(row: ClaimedWorkflow, stageName: string, entry: StageEntry, signal: AbortSignal): Promise<BoundStage>;
}

/** The present stage of a workflow's row, with the time of its entry, its stored deadline and its attempt. */
export interface StageEntry {
  readonly enteredAt: Date;
  readonly deadline: Date | null;
  readonly attempt: number;
  readonly reentered: boolean;
}

/** Under the key `$engine`, a workflow's state holds facts of the engine that stages do not see. */
export const ENGINE_FACTS = "$engine";
export interface EngineFacts {
  /** True after the verb `adopt`, so that a workflow that succeeds ends as `reconciled` and not as `completed`. */
  readonly adopting?: boolean;
  /** True after the verb `mark_manual_intervention`, so that only an operator's verb continues the workflow. */
  readonly frozen?: boolean;
  /** The unavailable service for which the stage waits; undefined while the stage waits for none. */
  readonly absence?: Absence;
}

const AbsenceFact = z.object({
  code: z.string(),
  since: z.iso.datetime(),
  looks: z.int(),
}) satisfies z.ZodType<Absence>;

const isObject = (value: unknown): value is Facts =>
  value !== null && typeof value === "object" && !Array.isArray(value);

export function engineFacts(state: unknown): EngineFacts {
  const facts = isObject(state) ? state[ENGINE_FACTS] : undefined;
  if (!isObject(facts)) return {};
  const absence = AbsenceFact.safeParse(facts["absence"]);
  return {
    ...(facts["adopting"] === true ? { adopting: true } : {}),
    ...(facts["frozen"] === true ? { frozen: true } : {}),
    ...(absence.success ? { absence: absence.data } : {}),
  };
}

export function withAbsence(state: Facts, absence: Absence | undefined): Facts {
  const { [ENGINE_FACTS]: _engine, ...facts } = state;
  const { absence: _past, ...kept } = engineFacts(state);
  const engine: EngineFacts = absence === undefined ? kept : { ...kept, absence };
  return Object.keys(engine).length === 0 ? facts : { ...facts, [ENGINE_FACTS]: engine };
}

export function stateOf(row: Pick<WorkflowRow, "state">): Facts {
  return isObject(row.state) ? row.state : {};
}

export function defineWorkflow<Context extends StageRun<Input, State>, Input, State extends Facts>(
  definition: WorkflowDefinition<Context, Input, State>,
): Workflow {
  const stages = new Map(definition.stages.map((stage) => [stage.name, stage]));
  if (stages.size !== definition.stages.length) throw new Error(`${definition.kind} names a stage twice`);
  for (const target of Object.values(definition.renamed)) {
    if (!stages.has(target)) throw new Error(`${definition.kind} renames to the unknown stage ${target}`);
  }
  const bind: Workflow["bind"] = async (row, stageName, entry, signal) => {
    const stage = stages.get(stageName);
    if (stage === undefined) throw new Error(`${definition.kind} has no stage ${stageName}`);
    const { [ENGINE_FACTS]: _engine, ...stored } = stateOf(row);
    const context = await definition.buildContext({
      workflowId: row.id,
      fence: row.fence,
      stage: stageName,
      attempt: entry.attempt,
      reentered: entry.reentered,
      enteredAt: entry.enteredAt,
      deadline: entry.deadline ?? entry.enteredAt,
      now: row.now,
      input: definition.input.parse(row.input),
      state: definition.state.parse(stored),
      signal,
    });
    const deadline = entry.deadline ?? deadlineAfter(entry.enteredAt, stage.timeout.seconds(context));
    const inTime = { ...context, deadline };
    return bound(stage, inTime, async () => (await definition.observedEvidence?.(inTime)) ?? {});
  };
  return {
    kind: definition.kind,
    stageNames: definition.stages.map((stage) => stage.name),
    titles: Object.fromEntries(definition.stages.map((stage) => [stage.name, stage.title])),
    compensable: definition.stages.filter((stage) => stage.compensate !== undefined).map((stage) => stage.name),
    hooks: definition.hooks,
    forgottenOnRecovery: definition.forgottenOnRecovery ?? [],
    forgottenOnRerun: definition.forgottenOnRerun ?? [],
    admit: definition.admit ?? ((tx) => admitAll(tx, definition.kind)),
    knownNames: [...stages.keys(), ...Object.keys(definition.renamed)],
    nameToday: (stored) => (stages.has(stored) ? stored : (definition.renamed[stored] ?? null)),
    restartPoint: definition.restartPoint ?? ((_verb, stage) => stage),
    rerunPoint: (stored) => definition.rerunPoint?.(definition.state.parse(stored)) ?? null,
    bind,
  };
}

function bound<Context extends StageRun<unknown, State>, State extends Facts>(
  stage: Stage<Context, State>,
  context: Context,
  observedEvidence: () => Promise<Evidence>,
): BoundStage {
  const reentry = stage.reentry;
  const compensate = stage.compensate?.bind(stage);
  return {
    name: stage.name,
    retry: stage.retry,
    overrides: stage.overrides,
    deadline: context.deadline,
    timeoutFailure: () => stage.timeout.failure(context),
    observedEvidence,
    observe: reentry.rule === "observe_first" ? () => reentry.observe(context) : null,
    run: () => stage.run(context),
    compensate: compensate === undefined ? null : (cause) => compensate(context, cause),
  };
}
