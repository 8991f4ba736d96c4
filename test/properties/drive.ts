import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { listStageEvents } from "../../hub/db/queries/workflow-events.ts";
import { type ClaimedWorkflow, claimWorkflows, isEnded, readWorkflow } from "../../hub/db/queries/workflows.ts";
import { type Workflow as WorkflowRow, workflows } from "../../hub/db/schema/index.ts";
import { classifyError } from "../../hub/workflows/classify-error.ts";
import { applyVerb } from "../../hub/workflows/engine/apply-verb.ts";
import { execute } from "../../hub/workflows/engine/execute.ts";
import type { Verb } from "../../hub/workflows/engine/recovery.ts";
import { commitStep } from "../../hub/workflows/engine/runner.ts";
import type { Workflow } from "../../hub/workflows/engine/workflow.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import type { TestDatabase } from "../support/database.ts";

/**
 * A hub's claim of a workflow, with which it runs the workflow's present stage once. Without a call of `commit`, the stage's result is lost, as when
 * the hub dies.
 */
export interface Look {
  readonly row: ClaimedWorkflow;
  run(): Promise<{ commit(): Promise<boolean> }>;
}
/** Carries out one run of a stage, for example in such a way that the hub dies before the commit. */
export type Interrupt = (look: Look) => Promise<void>;

export const plainly: Interrupt = async (look) => {
  expect(await (await look.run()).commit()).toBe(true);
};

/**
 * Moves the workflow's timestamps into the past by its planned wait, as if MAAS or the secret store were away. After twelve runs of a stage during an
 * outage, the timestamps move by ten times the planned wait, so that a long outage takes few runs. The first twelve runs cover an outage of five
 * minutes, which must not reach a stage's deadline in one move.
 */
const passAbsence = (db: TestDatabase["database"]["db"], id: WorkflowId) =>
  db.execute(sql`
    with waits as (
      select id, greatest(wake_at - now(), interval '0')
        * case when (state #>> '{$engine,absence,looks}')::int > 12 then 10 else 1 end as for from workflows
      where id = ${id} and state #>> '{$engine,absence,since}' is not null and status in ('running', 'compensating'))
    update workflows w set
      stage_entered_at = stage_entered_at - waits.for,
      stage_deadline = stage_deadline - waits.for,
      state = jsonb_set(state, '{$engine,absence,since}', to_jsonb(to_char(
        ((state #>> '{$engine,absence,since}')::timestamptz - waits.for) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))),
      compensation = case when compensation ->> 'startedAt' is null then compensation
        else jsonb_set(compensation, '{startedAt}', to_jsonb(to_char(
          ((compensation ->> 'startedAt')::timestamptz - waits.for) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) end
    from waits where w.id = waits.id`);

/**
 * True if the workflow's stage waits for something. The agent of a workflow's host has no task before a stage waits for the agent, so the simulated
 * agents need queries only for a workflow that waits.
 */
export const isWaiting = ({ waitReason }: WorkflowRow): boolean => waitReason !== null;

/** True if the workflow waits because MAAS or the secret store is away. */
const isAway = ({ state }: WorkflowRow): boolean =>
  (state as { $engine?: { absence?: unknown } }).$engine?.absence !== undefined;

/**
 * True if a hub may claim the workflow at once, so that the test need not make the workflow due. `drive` saves the statement in most of its runs,
 * because a workflow is due when it enters a stage.
 */
const isDue = ({ wakeAt, leaseOwner }: WorkflowRow): boolean =>
  leaseOwner === null && wakeAt !== null && wakeAt.getTime() < Date.now();

/** No workflow of the tests needs more than `MOST_RUNS` runs of its stages, even with faults. */
const MOST_RUNS = 2000;

/** Runs workflows through the engine's own steps, one run of a stage at a time and without real waiting. */
export class Driver {
  readonly kinds: readonly Workflow[];
  readonly #test: TestDatabase;
  readonly #known: readonly string[];
  readonly #play: (id: WorkflowId, row: WorkflowRow) => Promise<void>;

  /** The argument `play` simulates what MAAS and the agent do between two runs of a stage. */
  constructor(
    test: TestDatabase,
    kinds: readonly Workflow[],
    play: (id: WorkflowId, row: WorkflowRow) => Promise<void>,
  ) {
    this.#test = test;
    this.kinds = kinds;
    this.#known = kinds.flatMap((kind) => kind.stageNames.map((stage) => `${kind.kind}/${stage}`));
    this.#play = play;
  }

  get #db() {
    return this.#test.database.db;
  }

  #kindOf(row: WorkflowRow): Workflow {
    const kind = this.kinds.find((one) => one.kind === row.kind);
    if (kind === undefined) throw new Error(`no kind ${row.kind}`);
    return kind;
  }

  async claim(id: WorkflowId): Promise<Look> {
    // Makes the workflow's row due and removes its lease, whatever the workflow waits for.
    await this.#db
      .update(workflows)
      .set({ wakeAt: sql`now()`, leaseOwner: null, leaseUntil: null })
      .where(eq(workflows.id, id));
    return this.#claimDue(id);
  }

  async #claimDue(id: WorkflowId): Promise<Look> {
    const claim = { hubId: randomUUID(), known: this.#known, limit: 500, leaseSeconds: 60 };
    const rows = await claimWorkflows(this.#db, claim);
    const row = rows.find((one) => one.id === id);
    if (row === undefined) throw new Error("the row could not be claimed");
    const workflow = this.#kindOf(row);
    return { row, run: () => this.#run(workflow, row) };
  }

  async #run(workflow: Workflow, row: ClaimedWorkflow): Promise<{ commit(): Promise<boolean> }> {
    const step = await execute({ workflow, row, signal: new AbortController().signal, classifyError });
    if (step === null) throw new Error("the run did not count");
    const { inTx } = this.#test.database;
    return {
      commit: () =>
        inTx((tx) => commitStep(tx, workflow, row, step))
          .catch(async (error: unknown) => {
            const transition = step.commitFailed?.(error) ?? null;
            if (transition === null) throw error;
            return inTx((tx) => commitStep(tx, workflow, row, { transition }));
          })
          .then((moved) => moved !== null),
    };
  }

  async step(id: WorkflowId): Promise<void> {
    const row = await readWorkflow(this.#db, id);
    if (row?.status === "pending") await this.#admit(id);
    await plainly(await this.claim(id));
  }

  /** Runs the workflow until it ends. The callback `at` decides how each run of a stage goes. When `at` returns null, the method `drive` stops. */
  async drive(
    id: WorkflowId,
    at: (row: WorkflowRow) => Interrupt | null | Promise<Interrupt | null> = () => plainly,
  ): Promise<WorkflowRow> {
    for (let runs = 0; runs < MOST_RUNS; runs += 1) {
      const row = await readWorkflow(this.#db, id);
      if (row === null) throw new Error("the row is gone");
      if (isEnded(row.status)) return row;
      if (row.status === "pending") {
        // `drive` reads the workflow's row once more after the admission, so that `at` also sees the first stage.
        await this.#admit(id);
        continue;
      }
      if (isAway(row)) await passAbsence(this.#db, id);
      await this.#play(id, row);
      const interrupt = await at(row);
      if (interrupt === null) return row;
      await interrupt(await (isDue(row) ? this.#claimDue(id) : this.claim(id)));
      // The simulated MAAS region runs in the test's own process and works by timers. The pause after each run of a stage lets the region's timers
      // fire.
      await new Promise((resolve) => setImmediate(resolve));
    }
    throw new Error(`the workflow never ended\n${await this.story(id)}`);
  }

  async #admit(id: WorkflowId): Promise<void> {
    await this.#db.update(workflows).set({ status: "running" }).where(eq(workflows.id, id));
  }

  async verb(workflowId: WorkflowId, verb: Verb): Promise<void> {
    const who = { actor: "ann", role: "admin", reason: "test" } as const;
    await this.#test.database.inTx((tx) => applyVerb(tx, this.kinds, { workflowId, verb, ...who }));
  }

  /** Returns everything that happened to the workflow, for the message of a failed assertion. */
  async story(id: WorkflowId): Promise<string> {
    const events = await listStageEvents(this.#db, id);
    return events.map((event) => `${event.stage} ${event.status}: ${event.message}`).join("\n");
  }
}
