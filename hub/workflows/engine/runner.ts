import type { Log } from "../../../shared/log.ts";
import { type Listener, listen } from "../../db/listen.ts";
import { recordStageEvents } from "../../db/queries/workflow-events.ts";
import { WORKFLOW_CHANNEL } from "../../db/queries/workflow-wakes.ts";
import {
  type ClaimedWorkflow,
  type ClaimWait,
  claimWorkflows,
  isEnded,
  moveWorkflow,
  pendingKinds,
  releaseLease,
  secondsToNextDue,
  type WorkflowTransition,
} from "../../db/queries/workflows.ts";
import { CommitOutcomeUnknownError, type Db, type InTx, type Tx } from "../../db/tx.ts";
import type { Labels } from "../../metrics/counted/family.ts";
import { workflowClaimSeconds, workflowClaims, workflowMoves } from "../../metrics/counted/workflow-runs.ts";
import { WakeSignal } from "../../timing/wake-signal.ts";
import { inStage } from "../../traces/current-stage.ts";
import { carryOutStop } from "./apply-verb.ts";
import { type ClassifyError, execute, type Step } from "./execute.ts";
import { Leases } from "./leases.ts";
import type { Workflow } from "./workflow.ts";

export interface RunnerOptions {
  readonly db: Db;
  readonly inTx: InTx;
  /** The id of the hub, which names the owner of its leases and is new at each start of the hub's process. */
  readonly hubId: string;
  readonly workflows: readonly Workflow[];
  readonly classifyError: ClassifyError;
  readonly log: Log;
  /** Without `databaseUrl`, only polling and `poke` find due workflows, because the runner gets no notifications of the database. */
  readonly databaseUrl?: string;
  readonly concurrency?: number;
  /**
   * The longest time in milliseconds between two attempts of the runner to claim due workflows. If a workflow becomes due, or if the database
   * notifies the runner, the runner claims workflows before `pollMs` has passed.
   */
  readonly pollMs?: number;
  /** If a hub does not renew a lease for `leaseSeconds`, another hub takes over the workflow. */
  readonly leaseSeconds?: number;
  /** The milliseconds for which `close` waits for unfinished runs to end by themselves. */
  readonly drainMs?: number;
}

export interface WorkflowRunner {
  poke(): void;
  /** `close` waits for unfinished runs or aborts them, and releases every lease. */
  close(): Promise<void>;
}

/** After a run that did not count as an attempt, the workflow waits `UNCOUNTED_PAUSE_SECONDS`. */
const UNCOUNTED_PAUSE_SECONDS = 1;
/**
 * Even without a notification, the runner tries to start pending workflows every `ADMIT_EVERY_MS`, because the end of another hub's workflow may have
 * made room for one.
 */
const ADMIT_EVERY_MS = 500;
/** The shortest time in milliseconds before the runner again tries to claim due workflows, after it found none. */
const SHORTEST_WAIT_MS = 10;

export function startWorkflowRunner(options: RunnerOptions): WorkflowRunner {
  const settings = { concurrency: 32, pollMs: 500, leaseSeconds: 3, drainMs: 2000, ...options };
  const { db, hubId, log, leaseSeconds } = settings;
  const workflows = new Map(options.workflows.map((workflow) => [workflow.kind, workflow]));
  const known = options.workflows.flatMap((workflow) => workflow.knownNames.map((name) => `${workflow.kind}/${name}`));
  const leases = new Leases({ db, hubId, leaseSeconds, log });
  const wake = new WakeSignal();
  let closing: Promise<void> | undefined;
  let admitAt = 0;

  const poke = (): void => {
    admitAt = 0;
    wake.raise();
  };
  const admitDue = async (): Promise<void> => {
    if (performance.now() < admitAt) return;
    admitAt = performance.now() + ADMIT_EVERY_MS;
    const pending = await pendingKinds(db);
    for (const workflow of options.workflows) if (pending.has(workflow.kind)) await admit(options.inTx, workflow);
  };
  const waitForDue = async (): Promise<void> => {
    const seconds = wake.raised ? 0 : await secondsToNextDue(db, known);
    const dueMs = seconds === null ? settings.pollMs : Math.max(SHORTEST_WAIT_MS, Math.ceil(seconds * 1000));
    await wake.wait(Math.min(settings.pollMs, dueMs));
  };
  const run = async (row: ClaimedWorkflow, signal: AbortSignal): Promise<void> => {
    const ended = await runOnce({ ...options, workflow: workflows.get(row.kind), row, signal });
    if (ended) admitAt = 0;
    wake.raise();
  };
  const turn = async (): Promise<void> => {
    await admitDue();
    const limit = settings.concurrency - leases.size;
    const sentAt = performance.now();
    const rows = limit > 0 ? await claimWorkflows(db, { hubId, known, limit, leaseSeconds }, countClaim) : [];
    for (const row of rows) leases.hold(row, sentAt, (signal) => run(row, signal));
    if (limit === 0) await wake.wait(settings.pollMs);
    else if (rows.length < limit) await waitForDue();
  };
  const loop = async (): Promise<void> => {
    while (closing === undefined) {
      try {
        await turn();
      } catch (error) {
        log.warn("workflow claim failed", { error });
        await wake.wait(Math.max(1000, settings.pollMs));
      }
    }
  };

  const listener = options.databaseUrl === undefined ? null : listenForWakes(options.databaseUrl, log, poke);
  const looping = loop();
  const close = async (): Promise<void> => {
    wake.raise();
    await looping;
    await listener?.close();
    await leases.close(settings.drainMs);
  };
  return {
    poke,
    close: () => {
      closing ??= Promise.resolve().then(close);
      return closing;
    },
  };
}

function countClaim({ dueSeconds, fromExpiredLease }: ClaimWait): void {
  workflowClaims.add({ from: fromExpiredLease ? "expired_lease" : "queue" });
  workflowClaimSeconds.observe({}, dueSeconds);
}

const listenForWakes = (url: string, log: Log, poke: () => void): Listener =>
  listen({
    url,
    applicationName: "muster-workflows",
    channels: [WORKFLOW_CHANNEL],
    log,
    onNotify: poke,
    onReconnect: poke,
  });

async function admit(inTx: InTx, workflow: Workflow): Promise<void> {
  await inTx(async (tx) => {
    for (const row of await workflow.admit(tx)) {
      const stage = workflow.nameToday(row.stage) ?? row.stage;
      const started = { stage, attempt: row.attempt, status: "started", message: "Admitted" } as const;
      await recordStageEvents(tx, row.id, row.fence, [started]);
      if (row.stageRuns === 0 && row.startedAt === null) await workflow.hooks.onStarted?.(tx, row);
    }
  });
}

interface OneRun extends RunnerOptions {
  readonly workflow: Workflow | undefined;
  readonly row: ClaimedWorkflow;
  readonly signal: AbortSignal;
}

/**
 * `runOnce` returns true if the workflow ended, because the end of a workflow may make room for a pending workflow. The promise of `runOnce` never
 * rejects.
 */
async function runOnce(run: OneRun): Promise<boolean> {
  const { workflow, row, log } = run;
  const about = { workflow_id: row.id, stage: row.stage, fence: row.fence };
  if (workflow === undefined) return false;
  const ended = (result: Labels<(typeof workflowMoves)["labels"]>["result"]) =>
    workflowMoves.add({ kind: row.kind, result });
  try {
    const visit = { workflowId: row.id, stage: row.stage, enteredAt: row.stageEnteredAt ?? row.now };
    const step = await inStage(visit, () =>
      execute({ workflow, row, signal: run.signal, classifyError: run.classifyError }),
    );
    if (run.signal.aborted) {
      ended("aborted");
      log.warn("stage result dropped", { ...about, reason: String(run.signal.reason) });
      return false;
    }
    if (step === null) {
      ended("uncounted");
      await releaseLease(run.db, row.id, row.fence, UNCOUNTED_PAUSE_SECONDS);
      return false;
    }
    const moved = await commitOrFail(run.inTx, workflow, row, step);
    ended(moved === null ? "fence_lost" : "committed");
    if (moved === null) log.warn("stage result dropped", { ...about, reason: "the fence was lost" });
    return moved !== null && isEnded(moved.status);
  } catch (error) {
    // If the hub does not know whether the database committed the result of a run, the workflow's next run starts from the stored row.
    ended("not_committed");
    const level = error instanceof CommitOutcomeUnknownError ? "info" : "warn";
    log[level]("stage result was not committed", { ...about, error });
    await releaseLease(run.db, row.id, row.fence, UNCOUNTED_PAUSE_SECONDS).catch(() => undefined);
    return false;
  }
}

/**
 * Returns the values written to the workflow's row, or null if another hub has taken over the row. An error in the stage's own `commit` becomes a
 * failure of the stage.
 */
async function commitOrFail(
  inTx: InTx,
  workflow: Workflow,
  row: ClaimedWorkflow,
  step: Step,
): Promise<WorkflowTransition | null> {
  try {
    return await inTx((tx) => commitStep(tx, workflow, row, step));
  } catch (error) {
    const transition = error instanceof CommitOutcomeUnknownError ? null : (step.commitFailed?.(error) ?? null);
    if (transition === null) throw error;
    return inTx((tx) => commitStep(tx, workflow, row, { transition }));
  }
}

/**
 * Commits the workflow's state, the stage events and the stage's own writes in one transaction (architecture 1). The transaction of `commitStep` also
 * carries out a recorded verb such as `cancel`, and calls the hooks for the workflow's end.
 */
export async function commitStep(
  tx: Tx,
  workflow: Workflow,
  row: ClaimedWorkflow,
  step: Step,
): Promise<WorkflowTransition | null> {
  const moved = await moveWorkflow(tx, row, step.transition);
  if (moved === null) return null;
  await step.commit?.(tx);
  const stopped = await carryOutStop(tx, workflow, moved);
  if (stopped !== null) return stopped;
  if (isEnded(step.transition.status)) {
    await workflow.hooks.onEnded?.(tx, row, step.transition);
  }
  return step.transition;
}
