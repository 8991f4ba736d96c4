import type { FailureClass } from "../../../shared/failures.ts";
import { WorkflowId } from "../../../shared/ids.ts";
import { sql } from "../orm.ts";
import type { Tx } from "../tx.ts";

/** The failure classes that mean only that the agent did not report in time. */
const GAVE_UP_ON_AGENT = [
  "agent_enrollment_failure",
  "post_deploy_connectivity_failure",
] as const satisfies readonly FailureClass[];

/**
 * Finds and locks workflows that failed because the agent was late: after the failure, the agent of the same generation connected and reported itself
 * healthy. `lockLateEnrollments` leaves out a workflow that another transaction has locked, or to which an operator applied the verb
 * mark-manual-intervention.
 */
export async function lockLateEnrollments(tx: Tx, kind: string, limit: number): Promise<WorkflowId[]> {
  const { rows } = await tx.execute<{ id: string }>(sql`
    select w.id from workflows w
    join node_onboardings o on o.onboarding_id = w.id
    join agent_sessions s on s.node_id = o.node_id and s.state = 'open'
    join node_conditions c on c.node_id = o.node_id and c.type = 'agent.healthy' and c.generation = s.generation
    where w.kind = ${kind}
      and w.status in ('failed_retryable', 'failed_manual_intervention')
      and w.failure_class = any(${sql.param([...GAVE_UP_ON_AGENT])}::text[])
      and coalesce(w.state #>> '{$engine,frozen}', 'false') <> 'true'
      and w.state ->> 'generation' = s.generation::text
      and c.status = 'True' and (c.expires_at is null or c.expires_at > now())
      and greatest(s.connected_at, c.observed_at) > w.completed_at
    order by w.completed_at
    limit ${limit}
    for update of w skip locked`);
  return rows.map((row) => WorkflowId.parse(row.id));
}
