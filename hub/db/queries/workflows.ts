import { z } from "zod";
import type { NEXT_VERBS } from "../../../shared/failure-rule.ts";
import type { Failure } from "../../../shared/failures.ts";
import { FAILURES, ruleOf } from "../../../shared/failures.ts";
import type { BatchId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { Leftover } from "../../../shared/leftover.ts";
import type { StopVerb, WorkflowStatus } from "../../../shared/workflow-status.ts";
import { isFailed, TERMINAL_WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { noteChange } from "../committed.ts";
import { and, count, eq, getTableColumns, notInArray, type SQL, sql } from "../orm.ts";
import { type Workflow, workflows } from "../schema/index.ts";
import { toDate } from "../timestamp.ts";
import type { Db, Tx } from "../tx.ts";
import { recordProgressEvent, tellingOf } from "./operation-progress.ts";
import { type Claim, recordStageEvents, type StageEventWrite } from "./workflow-events.ts";
import { releaseSubjects } from "./workflow-subjects.ts";
import { WORKFLOW_CHANNEL } from "./workflow-wakes.ts";

/** The field `now` is the database's time when this hub leased or locked the workflow's row. */
export type ClaimedWorkflow = Workflow & { readonly now: Date; readonly claim?: Claim | undefined };
/** How long a workflow had been due when the hub claimed it, and whether another hub's lease on it had expired. */
export interface ClaimWait {
  readonly dueSeconds: number;
  readonly fromExpiredLease: boolean;
}

/**
 * While a hub holds a lease on a workflow's row, the row's `wake_at` is one day in the future. If a change wakes a workflow while a hub runs it, the
 * wake-up sets an earlier `wake_at`, which the hub notices when it commits the run.
 */
const ASLEEP_WHILE_LEASED = sql`now() + interval '1 day'`;

export const NO_STOP = { stopRequest: null, cancelRequestedAt: null };

const withNow = { ...getTableColumns(workflows), now: sql<Date>`now()`.mapWith(toDate) };

type NewWorkflow = Pick<
  typeof workflows.$inferInsert,
  "id" | "kind" | "siteId" | "batchId" | "stage" | "input" | "requestedBy"
>;

export async function insertWorkflows(tx: Tx, rows: readonly NewWorkflow[]): Promise<void> {
  await tx.insert(workflows).values(rows.map((row) => ({ ...row, status: "pending" as const, wakeAt: sql`now()` })));
  await tx.execute(sql`select pg_notify(${WORKFLOW_CHANNEL}, '')`);
}

/**
 * Takes workflows that are due: rows without a lease whose `wake_at` has passed, and rows whose lease has expired. The argument `known` lists the
 * pairs of workflow kind and stage that this hub can run. During a rolling upgrade, a hub leaves workflows with unknown stages to newer hubs
 * (decision W3).
 */
export async function claimWorkflows(
  db: Db,
  claim: { hubId: string; known: readonly string[]; limit: number; leaseSeconds: number },
  onClaim?: (wait: ClaimWait) => void,
): Promise<ClaimedWorkflow[]> {
  const rows = await db
    .update(workflows)
    .set({
      leaseOwner: claim.hubId,
      leaseUntil: sql`now() + make_interval(secs => ${claim.leaseSeconds})`,
      wakeAt: ASLEEP_WHILE_LEASED,
      fence: sql`${workflows.fence} + 1`,
      stageRuns: sql`${workflows.stageRuns} + 1`,
      stageEnteredAt: sql`coalesce(${workflows.stageEnteredAt}, now())`,
      startedAt: sql`coalesce(${workflows.startedAt}, now())`,
    })
    .where(
      // PostgreSQL evaluates `array(...)` once for each statement. With a plain IN instead of `array(...)`, PostgreSQL may run the locking subquery
      // more than once and lock more rows than the limit.
      sql`${workflows.id} = any(array(
        select w.id from workflows w
        where w.status in ('running', 'compensating')
          and w.kind || '/' || w.stage = any(${sql.param([...claim.known])}::text[])
          and w.wake_at is not null
          and case when w.lease_owner is null then w.wake_at <= now() else w.lease_until < now() end
        order by w.wake_at
        limit ${claim.limit}
        for update skip locked))`,
    )
    // PostgreSQL reads the time of a claim after it has locked the row, i.e. after the previous holder's commit.
    .returning({ ...withNow, claimedAt: sql<string>`clock_timestamp()::text`, ...beforeClaim });
  return rows.map(({ claimedAt, dueSeconds, fromExpiredLease, ...row }) => {
    onClaim?.({ dueSeconds: Math.max(0, dueSeconds ?? 0), fromExpiredLease: fromExpiredLease ?? false });
    return { ...row, claim: { hubId: claim.hubId, at: claimedAt } };
  });
}

/**
 * Returns the seconds until the next workflow that this hub can run becomes due if nothing wakes a workflow earlier, or null if none becomes due.
 * `secondsToNextDue` leaves out a workflow that has been due for longer than `JUST_DUE`: the hub's last claim could not take it, because another
 * hub's transaction holds the workflow's row.
 */
export async function secondsToNextDue(db: Db, known: readonly string[]): Promise<number | null> {
  const { rows } = await db.execute<{ seconds: number | null }>(sql`
    select extract(epoch from min(due) - now())::float8 as seconds from (
      select case when w.lease_owner is null then w.wake_at else w.lease_until end as due from workflows w
      where w.status in ('running', 'compensating')
        and w.kind || '/' || w.stage = any(${sql.param([...known])}::text[])
        and w.wake_at is not null) next
    where due > now() - ${JUST_DUE}`);
  return rows[0]?.seconds ?? null;
}
const JUST_DUE = sql`interval '200 ms'`;

/** Returns the kinds of the workflows that wait for their admission. */
export async function pendingKinds(db: Db): Promise<Set<string>> {
  const rows = await db.selectDistinct({ kind: workflows.kind }).from(workflows).where(eq(workflows.status, "pending"));
  return new Set(rows.map(({ kind }) => kind));
}

/** A subquery in RETURNING reads the row as it was before the statement, because a statement does not see its own writes. */
const ofFormer = (value: SQL) => sql`(select ${value} from workflows former where former.id = ${workflows.id})`;
const beforeClaim = {
  dueSeconds: sql<
    number | null
  >`${ofFormer(sql`extract(epoch from clock_timestamp() - case when former.lease_owner is null then former.wake_at else former.lease_until end)::float8`)}`,
  fromExpiredLease: sql<boolean | null>`${ofFormer(sql`former.lease_owner is not null`)}`,
};

/**
 * Returns the ids of the workflows that this hub still holds under the given fences. A workflow that `renewLeases` does not return belongs to another
 * hub now.
 */
export async function renewLeases(
  db: Db,
  hubId: string,
  leaseSeconds: number,
  held: readonly { id: WorkflowId; fence: number }[],
): Promise<Set<WorkflowId>> {
  const rows = await db
    .update(workflows)
    .set({ leaseUntil: sql`now() + make_interval(secs => ${leaseSeconds})` })
    .where(
      and(
        eq(workflows.leaseOwner, hubId),
        sql`(${workflows.id}, ${workflows.fence}) in (
          select * from unnest(${sql.param(held.map((row) => row.id))}::uuid[], ${sql.param(held.map((row) => row.fence))}::bigint[]))`,
      ),
    )
    .returning({ id: workflows.id });
  return new Set(rows.map((row) => row.id));
}

/**
 * Gives up the lease on a workflow's row and keeps status and stage, e.g. because the database was unreachable during the run. A hub's run of a
 * workflow that ends with `releaseLease` does not count as an attempt of the stage.
 */
export async function releaseLease(db: Db, id: WorkflowId, fence: number, inSeconds: number): Promise<void> {
  await db
    .update(workflows)
    .set({
      leaseOwner: null,
      leaseUntil: null,
      wakeAt: sql`least(${workflows.wakeAt}, now() + make_interval(secs => ${inSeconds}))`,
    })
    .where(and(eq(workflows.id, id), eq(workflows.fence, fence)));
}

/**
 * Gives back all workflow leases of a hub that stops, so that other hubs need not wait until the leases expire. `releaseAllLeases` raises the fence
 * of each released workflow, so the stopping hub's unfinished runs can write nothing more.
 */
export async function releaseAllLeases(db: Db, hubId: string): Promise<void> {
  await db
    .update(workflows)
    .set({ leaseOwner: null, leaseUntil: null, wakeAt: sql`now()`, fence: sql`${workflows.fence} + 1` })
    .where(eq(workflows.leaseOwner, hubId));
}

/** The stages that a workflow must still compensate, last stage first, and the workflow's status after the compensation. */
export interface CompensationPlan {
  readonly cause: "failure" | "cancel" | "restart";
  readonly stages: readonly string[];
  readonly endsAs: WorkflowStatus;
  /** The number of the present attempt to undo (compensate) what the first stage in `stages` did. */
  readonly attempt: number;
  /** The time in ISO 8601 when the compensation of the first stage in `stages` began; the compensation's deadline counts from `startedAt`. */
  readonly startedAt: string | null;
  /** The stage at which the verb restart_clean begins the workflow anew, with an empty state. */
  readonly restartAt?: string;
  readonly leaves?: Leftover;
}

/**
 * If an operator gives a verb that stops a workflow, such as `cancel`, while a hub runs the workflow, the verb takes effect in the transaction that
 * commits the run.
 */
export interface StopRequest {
  readonly verb: StopVerb;
  readonly because: string;
}

export function stopRequestOf(row: Pick<Workflow, "stopRequest" | "cancelRequestedAt">): StopRequest | null {
  if (row.stopRequest !== null) return row.stopRequest as StopRequest;
  return row.cancelRequestedAt === null ? null : { verb: "cancel", because: "Cancelled by request" };
}

/** A `WorkflowTransition` has the new values of a workflow's row and the new events of its history, all for one transaction. */
export interface WorkflowTransition {
  readonly status: WorkflowStatus;
  readonly stage: string;
  readonly attempt: number;
  /** When a workflow enters a stage, even its present stage once more, the stage's number of runs, time of entry and deadline begin anew. */
  readonly entersStage: boolean;
  readonly deadline: Date | null;
  readonly waitReason: string | null;
  readonly waitOn: string | null;
  /** `wakeInSeconds` is null if only an operator's verb can continue the workflow. */
  readonly wakeInSeconds: number | null;
  readonly state: Readonly<Record<string, unknown>>;
  readonly failure: Failure | null;
  readonly compensation: CompensationPlan | null;
  /** What a cancelled or completed workflow has left outside the database, e.g. in MAAS. */
  readonly leaves?: Leftover;
  readonly events: readonly StageEventWrite[];
}

const isOneOf = <T extends string>(list: readonly T[], value: string): value is T =>
  (list as readonly string[]).includes(value);

export const isTerminal = (status: WorkflowStatus): boolean => isOneOf(TERMINAL_WORKFLOW_STATUSES, status);

/** A failed workflow counts as unfinished, because an operator's verb can continue the workflow on its machine. */
export async function countUnfinished(tx: Db | Tx, siteId: SiteId): Promise<number> {
  const [row] = await tx
    .select({ unfinished: count() })
    .from(workflows)
    .where(and(eq(workflows.siteId, siteId), notInArray(workflows.status, [...TERMINAL_WORKFLOW_STATUSES])));
  return row?.unfinished ?? 0;
}
/** True if the workflow is over, or has failed so that only an operator can continue the workflow with a verb of the API. */
export const isEnded = (status: WorkflowStatus): boolean => isTerminal(status) || isFailed(status);

/**
 * Writes a workflow's new status and stage, and returns null if another hub has taken the workflow's row. If an operator's verb, such as `cancel`,
 * waits in the row of a workflow that is not over, `moveWorkflow` leaves it there for the caller to carry out.
 */
export async function moveWorkflow(
  tx: Tx,
  row: Pick<ClaimedWorkflow, "id" | "fence" | "claim" | "stageEnteredAt" | "now" | "toldAt" | "untold">,
  transition: WorkflowTransition,
): Promise<ClaimedWorkflow | null> {
  const failure = transition.failure;
  const told = failure ?? transition.leaves;
  const telling = isEnded(transition.status) ? "ended" : tellingOf(row, transition.events);
  const [moved] = await tx
    .update(workflows)
    .set({
      status: transition.status,
      stage: transition.stage,
      attempt: transition.attempt,
      ...(transition.entersStage
        ? { stageRuns: 0, stageEnteredAt: sql`now()`, stageDeadline: null }
        : { stageDeadline: transition.deadline }),
      waitReason: transition.waitReason,
      waitOn: transition.waitOn,
      wakeAt: wakeAt(transition),
      leaseOwner: null,
      leaseUntil: null,
      state: transition.state,
      failureClass: failure?.class ?? null,
      failureCode: failure?.code ?? null,
      failureMessage: told?.message ?? null,
      evidence: told?.evidence ?? {},
      nextAction: failure === null ? (transition.leaves?.nextAction ?? null) : ruleOf(failure).nextAction,
      compensation: transition.compensation,
      ...(isEnded(transition.status) ? { completedAt: sql`now()` } : { completedAt: null }),
      ...(isTerminal(transition.status) ? NO_STOP : {}),
      updatedAt: sql`now()`,
      ...(telling === "tell" ? { toldAt: sql`now()` } : {}),
      untold: telling === "later",
    })
    .where(and(eq(workflows.id, row.id), eq(workflows.fence, row.fence)))
    .returning(withNow);
  if (moved === undefined) return null;
  await recordStageEvents(tx, row.id, row.fence, transition.events, row.claim);
  if (telling === "tell") await recordProgressEvent(tx, moved);
  if (isTerminal(transition.status)) await releaseSubjects(tx, row.id);
  noteMove(tx, row, moved, transition);
  return moved;
}

const Host = z.object({ hostname: z.string().optional(), node_id: z.string().optional() });

/** The input of a workflow has another form for each kind, and only the fields `hostname` and `node_id` say which host it is about. */
function hostOf(input: unknown): z.output<typeof Host> {
  const parsed = Host.safeParse(input);
  return parsed.success ? parsed.data : {};
}

function noteMove(
  tx: Tx,
  { stageEnteredAt: enteredAt, claim }: Pick<ClaimedWorkflow, "claim" | "stageEnteredAt">,
  moved: ClaimedWorkflow,
  transition: WorkflowTransition,
): void {
  const { id: workflowId, kind, siteId, requestedAt, now: endedAt } = moved;
  const host = hostOf(moved.input);
  const { status, stage: nextStage } = transition;
  const failure = transition.failure && { class: transition.failure.class, code: transition.failure.code };
  for (const event of transition.events) {
    if (event.status === "started" || event.status === "waiting") continue;
    const { stage, attempt, status: outcome, message: reason } = event;
    const about = { workflowId, kind, siteId, host, stage, attempt, outcome, reason, failure, nextStage, status };
    noteChange(tx, { what: "stage_ended", ...about, enteredAt, endedAt, byRun: claim !== undefined });
  }
  if (isEnded(status))
    noteChange(tx, { what: "workflow_ended", workflowId, kind, siteId, host, status, requestedAt, endedAt, failure });
}

function wakeAt(transition: WorkflowTransition) {
  if (transition.wakeInSeconds === null) return null;
  const later = sql`now() + make_interval(secs => ${transition.wakeInSeconds})`;
  // When a node, machine or task changes, only a workflow whose stage waits for it runs earlier; the delay before a retry never becomes shorter.
  const woken = transition.waitOn === null ? sql`false` : sql`${workflows.wakeAt} <= now()`;
  return sql`case when ${woken} then now() else ${later} end`;
}

export async function readWorkflow(db: Db | Tx, id: WorkflowId): Promise<Workflow | null> {
  const [row] = await db.select().from(workflows).where(eq(workflows.id, id));
  return row ?? null;
}

/** While a transaction holds the lock on a workflow's row, operators' verbs wait, and hubs that claim workflows skip the row. */
export async function lockWorkflow(tx: Tx, id: WorkflowId): Promise<ClaimedWorkflow | null> {
  const [row] = await tx.select(withNow).from(workflows).where(eq(workflows.id, id)).for("update");
  return row ?? null;
}

export async function patchState(tx: Tx, id: WorkflowId, facts: Readonly<Record<string, unknown>>): Promise<void> {
  await tx
    .update(workflows)
    .set({ state: sql`${workflows.state} || ${JSON.stringify(facts)}::jsonb` })
    .where(eq(workflows.id, id));
}

/** A hub sets `started_at` at its first claim of a workflow, so null distinguishes the workflow's first admission from later admissions. */
export const admitWhere = (tx: Tx, which: SQL): Promise<Workflow[]> =>
  tx
    .update(workflows)
    .set({
      status: "running",
      wakeAt: sql`now()`,
      stageEnteredAt: null,
      stageDeadline: null,
      updatedAt: sql`now()`,
    })
    .where(and(eq(workflows.status, "pending"), which))
    .returning();

/** SQL that is true for workflows that wait for their first admission, and so have done nothing yet. */
const neverBegan = and(eq(workflows.status, "pending"), sql`${workflows.startedAt} is null`);

/**
 * Stores in each operation of the batch that has not begun why the operation waits, or removes the reason if `reason` is null. `setBatchWait` returns
 * the number of the batch's operations that have not begun.
 */
export async function setBatchWait(tx: Tx, batchId: BatchId, waitReason: string | null): Promise<number> {
  const waiting = await tx
    .update(workflows)
    .set({ waitReason })
    .where(and(eq(workflows.batchId, batchId), neverBegan))
    .returning({ id: workflows.id });
  return waiting.length;
}

export const admitAll = (tx: Tx, kind: string): Promise<Workflow[]> => admitWhere(tx, eq(workflows.kind, kind));

/** Locks the workflow's row, and returns true if no newer claim has raised the workflow's fence. */
export async function holdsFence(tx: Tx, id: WorkflowId, fence: number): Promise<boolean> {
  const rows = await tx
    .select({ id: workflows.id })
    .from(workflows)
    .where(and(eq(workflows.id, id), eq(workflows.fence, fence)))
    .for("no key update");
  return rows.length > 0;
}

export function nextVerbOf(
  row: Pick<Workflow, "failureClass" | "failureCode" | "evidence">,
): (typeof NEXT_VERBS)[number] | null {
  const { failureClass, failureCode, evidence } = row;
  if (failureClass === null || failureCode === null || !Object.hasOwn(FAILURES, failureClass)) return null;
  return ruleOf({ class: failureClass, code: failureCode, evidence } as Failure).nextVerb;
}
