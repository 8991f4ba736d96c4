import type { Pool } from "pg";

/**
 * An SQL query that searches workflow events for a stage that ran twice at the same time, and for a step that hubs stored twice. A hub claims a
 * workflow for one run of the workflow's stage. A hub's claim of a workflow ends when the hub commits the run of the workflow's stage. The events of
 * a committed stage run name the claim under which the stage ran. A hub reads `claimed_at`, the time of a claim, while it holds the lock of the
 * workflow's row. The time of a claim is therefore later than the commit of the previous claim. The workflow events do not contain a hub's claim of a
 * workflow if the hub committed no step.
 */
const FAULTS = `
  with claims as (
    select workflow_id, fence, count(distinct (hub_id, claimed_at)) as holders, count(distinct occurred_at) as commits,
      min(claimed_at) as claimed_at, max(occurred_at) as committed_at, min(id) as first_id, max(id) as last_id
    from workflow_events where claimed_at is not null group by workflow_id, fence),
  ordered as (
    select *, lag(committed_at) over by_fence as before_committed_at, lag(last_id) over by_fence as before_last_id
    from claims window by_fence as (partition by workflow_id order by fence)),
  terminal as (
    select workflow_id, stage, attempt, fence, count(*) as times from workflow_events
    where status in ('succeeded', 'skipped', 'failed') group by workflow_id, stage, attempt, fence)
  select 'one fence, two claims' as fault, workflow_id, fence::bigint from claims where holders <> 1
  union all select 'one claim, two commits', workflow_id, fence from claims where commits <> 1
  union all select 'a claim ended before it began', workflow_id, fence from claims where committed_at < claimed_at
  union all select 'claims overlap', workflow_id, fence from ordered where claimed_at < before_committed_at
  union all select 'fences do not rise with the history', workflow_id, fence from ordered where first_id < before_last_id
  union all select 'a stage ended twice in one claim', workflow_id, fence from terminal where times > 1
  union all select 'history above the row''s fence', e.workflow_id, e.fence
    from workflow_events e join workflows w on w.id = e.workflow_id where e.fence > w.fence
  union all select 'a move without its claim', e.workflow_id, e.fence
    from workflow_events e where e.claimed_at is null and e.status in ('succeeded', 'skipped', 'failed')
  union all select 'an event of the outbox twice', null, count(*)
    from domain_events where type like 'node.onboarding.%' group by type, subject having count(*) > 1`;

export interface HistoryFault {
  readonly fault: string;
  readonly workflow_id: string | null;
  readonly fence: string;
}

export async function findHistoryFaults(pool: Pool): Promise<HistoryFault[]> {
  return (await pool.query<HistoryFault>(FAULTS)).rows;
}
