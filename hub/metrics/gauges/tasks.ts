import { TASK_STATES } from "../../../shared/task-state.ts";
import { sql } from "../../db/orm.ts";
import { gauge, upTo } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";

const tasks = gauge({
  name: "muster_tasks",
  help: "Tasks of agents that have not ended, by type and state.",
  labels: { type: upTo(64), state: TASK_STATES },
  told: "database",
});
const oldest = gauge({
  name: "muster_tasks_oldest_queued_seconds",
  help: "How long the oldest queued task has waited for its agent; 0 if no task is queued.",
  labels: {},
  told: "database",
});

type Row = { type: string; state: (typeof TASK_STATES)[number]; n: number; oldest: number | null };

export const taskGauges = gaugeGroup({
  name: "tasks",
  families: [tasks, oldest],
  collect: async (db) => {
    const { rows } = await db.execute<Row>(sql`
      select type, state, count(*)::int as n,
        extract(epoch from now() - min(created_at) filter (where state = 'queued'))::float8 as oldest
      from tasks where state in ('queued', 'offered', 'running', 'cancelling') group by 1, 2 order by 1, 2`);
    tasks.show(rows.map(({ type, state, n }) => ({ labels: { type, state }, value: n })));
    oldest.show([{ labels: {}, value: Math.max(0, ...rows.map((row) => row.oldest ?? 0)) }]);
  },
});
