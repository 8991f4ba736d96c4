import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { TASK_STATES } from "../../../shared/task-state.ts";
import { sql } from "../../db/orm.ts";
import type { Tx } from "../../db/tx.ts";
import { bounded, iso, OF } from "../rows.ts";
import { databaseSection } from "../section.ts";

const MOST_COUNTS = 200;
const MOST_FAILURES = 50;

const Count = z.strictObject({
  type: z.string(),
  state: z.enum(TASK_STATES),
  error_code: z.string().nullable(),
  tasks: z.int(),
  most_attempts: z.int(),
  oldest_created_at: Timestamp,
  oldest_deadline: Timestamp,
});
const Failure = z.strictObject({
  id: z.uuid(),
  node_id: z.uuid(),
  workflow_id: z.uuid().nullable(),
  type: z.string(),
  state: z.enum(TASK_STATES),
  attempts: z.int(),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  finished_at: Timestamp.nullable(),
});

async function readCounts(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof Count> & { of: number }>(sql`
    select type, state, error_code, count(*)::int as tasks, max(attempts)::int as most_attempts,
      ${iso("min(created_at)")} as oldest_created_at, ${iso("min(deadline)")} as oldest_deadline, ${OF}
    from tasks group by 1, 2, 3 order by state in ('succeeded', 'cancelled'), 4 desc, 1, 2, 3 limit ${MOST_COUNTS}`);
  return bounded("counts", rows);
}

async function readFailures(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof Failure> & { of: number }>(sql`
    select id, node_id, workflow_id, type, state, attempts, error_code, error_message,
      ${iso("finished_at")} as finished_at, ${OF}
    from tasks where state in ('failed', 'expired') or (state <> 'succeeded' and error_code is not null)
    order by updated_at desc, id limit ${MOST_FAILURES}`);
  return bounded("failures", rows);
}

export const tasks = databaseSection({
  name: "tasks",
  about:
    "Tasks by type and state, and the latest that failed (retried or not) or timed out; without inputs and results",
  data: z.strictObject({ counts: z.array(Count), failures: z.array(Failure) }),
  read: async (tx) => {
    const counts = await readCounts(tx);
    const failures = await readFailures(tx);
    return {
      data: { counts: counts.shown, failures: failures.shown },
      leftOut: [...counts.leftOut, ...failures.leftOut],
    };
  },
});
