import { WORKFLOW_STATUSES, type WorkflowStatus } from "../../../shared/workflow-status.ts";
import { sql } from "../../db/orm.ts";
import { gauge, upTo } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";

const kind = upTo(16);
const stage = upTo(64);

const workflows = gauge({
  name: "muster_workflows",
  help: "Workflows that are not over, by kind, stage and status.",
  labels: { kind, stage, status: WORKFLOW_STATUSES },
  told: "database",
});

const overShare = gauge({
  name: "muster_workflows_over_deadline_share",
  help: "Running workflows that have used more than the given share of their stage's time limit; a workflow above 0.8 also counts above 0.5.",
  labels: { kind, stage, share: ["0.5", "0.8", "1"] },
  told: "database",
});

const failed = gauge({
  name: "muster_workflows_failed",
  help: "Workflows that have failed and wait for a person or for a retry by a person, by failure class.",
  labels: { kind, class: upTo(24), status: ["failed_retryable", "failed_manual_intervention"] },
  told: "database",
});

const oldestDue = gauge({
  name: "muster_workflows_oldest_due_seconds",
  help: "How long the oldest due workflow has waited for a hub to claim it; 0 if none waits.",
  labels: {},
  told: "database",
});

type Row = {
  kind: string;
  stage: string;
  status: WorkflowStatus;
  failure_class: string | null;
  n: number;
  half: number;
  most: number;
  all: number;
  due: number | null;
};

const SHARES = [
  ["0.5", "half"],
  ["0.8", "most"],
  ["1", "all"],
] as const;

export const workflowGauges = gaugeGroup({
  name: "workflows",
  families: [workflows, overShare, failed, oldestDue],
  collect: async (db) => {
    const { rows } = await db.execute<Row>(sql`
      with live as (
        select kind, stage, status, case when status like 'failed%' then failure_class end as failure_class,
          case when status = 'running' and stage_deadline > stage_entered_at then
            extract(epoch from now() - stage_entered_at) / extract(epoch from stage_deadline - stage_entered_at) end as share,
          case when status in ('running', 'compensating') and (lease_owner is null or lease_until < now()) and wake_at <= now()
            then extract(epoch from now() - wake_at) end as due
        from workflows where status not in ('completed', 'cancelled', 'reconciled'))
      select kind, stage, status, failure_class, count(*)::int as n, (count(*) filter (where share > 0.5))::int as half,
        (count(*) filter (where share > 0.8))::int as most, (count(*) filter (where share > 1))::int as all, max(due)::float8 as due
      from live group by 1, 2, 3, 4 order by 1, 2, 3, 4`);
    workflows.show(rows.map(({ kind, stage, status, n }) => ({ labels: { kind, stage, status }, value: n })));
    overShare.show(
      rows.flatMap(({ kind, stage, ...row }) =>
        SHARES.flatMap(([share, column]) =>
          row[column] === 0 ? [] : [{ labels: { kind, stage, share }, value: row[column] }],
        ),
      ),
    );
    failed.show(
      rows.flatMap(({ kind, status, failure_class, n }) =>
        status === "failed_retryable" || status === "failed_manual_intervention"
          ? [{ labels: { kind, status, class: failure_class ?? "unknown" }, value: n }]
          : [],
      ),
    );
    oldestDue.show([{ labels: {}, value: Math.max(0, ...rows.map(({ due }) => due ?? 0)) }]);
  },
});
