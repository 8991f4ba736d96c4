import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "../../hub/db/orm.ts";
import { until } from "../support/until.ts";
import { type Bench, insertRows, percentile, startEngineHub, withDatabase } from "./bench-hubs.ts";
import { STAGES, TIMED } from "./bench-workflow.ts";
import type { Figure } from "./figure.ts";

const WORKFLOWS = 400;
const TIMED_ROWS = 300;
const TIMED_OVER_MS = 6_000;
const IDLE_MS = 1_500;

interface Measured {
  readonly hubs: number;
  readonly stagesPerSecond: number;
  readonly statementsPerStage: number;
  readonly idlePerSecond: number;
  readonly late: readonly number[];
}

/** Measures how fast hubs complete stages that call no other system, and how soon a hub starts a due workflow. */
export async function measureStageMoves(stateDir: string): Promise<Figure[]> {
  const measured: Measured[] = [];
  await withDatabase(stateDir, async (bench) => {
    for (const hubs of [1, 2, 4]) measured.push(await measureHubs(bench, hubs));
  });
  const [one] = measured;
  const ratio = (value: number, of: number | undefined): string =>
    `ratio to one hub ${(value / (of ?? value)).toFixed(2)}`;
  return [
    ...measured.map((m) => ({
      name: `stages completed per second, ${m.hubs} hub${m.hubs > 1 ? "s" : ""}`,
      value: m.stagesPerSecond,
      unit: "stages/s",
      note: `${WORKFLOWS} workflows x ${STAGES} stages, fsync on; ${ratio(m.stagesPerSecond, one?.stagesPerSecond)}`,
    })),
    ...measured.map((m) => ({
      name: `SQL statements per completed stage, ${m.hubs} hub${m.hubs > 1 ? "s" : ""}`,
      value: m.statementsPerStage,
      unit: "statements",
      note: `counted at the driver of each hub, BEGIN and COMMIT too; ${ratio(m.statementsPerStage, one?.statementsPerStage)}`,
    })),
    ...measured.map((m) => ({
      name: `SQL statements per second and idle hub, ${m.hubs} hub${m.hubs > 1 ? "s" : ""}`,
      value: m.idlePerSecond,
      unit: "statements/s",
      note: "nothing is due: the poll for due rows and for admission",
    })),
    ...measured.flatMap((m) =>
      [50, 99].map((part) => ({
        name: `due to started, p${part}, ${m.hubs} hub${m.hubs > 1 ? "s" : ""}`,
        value: percentile(m.late, part / 100),
        unit: "ms",
        note: `${TIMED_ROWS} rows due at random within ${TIMED_OVER_MS / 1000} s, by the database's clock`,
      })),
    ),
  ];
}

async function measureHubs(bench: Bench, count: number): Promise<Measured> {
  const { db } = bench.database;
  await db.execute(sql`truncate bench_hubs, workflows, workflow_events cascade`);
  const hubs = await Promise.all(Array.from({ length: count }, () => startEngineHub(bench)));
  await sleep(IDLE_MS);
  await insertRows(
    bench,
    "stage_1",
    Array.from({ length: WORKFLOWS }, () => 0),
  );
  await completed(bench, WORKFLOWS);
  const { rows: took } = await db.execute<{ ended: number; seconds: number }>(sql`
    select count(*)::int as ended, extract(epoch from max(occurred_at) - min(claimed_at))::float8 as seconds
    from workflow_events where status = 'succeeded'`);
  const ended = took[0]?.ended ?? 0;
  if (ended !== WORKFLOWS * STAGES)
    throw new Error(`expected ${WORKFLOWS * STAGES} ended stages, the history holds ${ended}`);

  const ids = await insertRows(
    bench,
    TIMED,
    Array.from({ length: TIMED_ROWS }, () => 300 + Math.random() * TIMED_OVER_MS),
  );
  await completed(bench, WORKFLOWS + TIMED_ROWS);
  const { rows: late } = await db.execute<{ late: number }>(
    sql`select (state->>'late_ms')::float8 as late from workflows where id = any(${sql.param(ids)}::uuid[])`,
  );
  await Promise.all(hubs.map((hub) => hub.child.stop()));
  const { rows: counted } = await db.execute<{ statements: number; idle: number }>(
    sql`select sum(statements)::int as statements, avg(idle_per_second)::float8 as idle from bench_hubs`,
  );
  return {
    hubs: count,
    stagesPerSecond: ended / (took[0]?.seconds ?? Number.NaN),
    statementsPerStage: (counted[0]?.statements ?? Number.NaN) / ended,
    idlePerSecond: counted[0]?.idle ?? Number.NaN,
    late: late.map((row) => row.late),
  };
}

const completed = (bench: Bench, count: number): Promise<true> =>
  until(
    "all bench workflows are completed",
    async () => {
      const { rows } = await bench.database.db.execute<{ done: number }>(
        sql`select count(*)::int as done from workflows where status = 'completed'`,
      );
      return rows[0]?.done === count ? true : undefined;
    },
    { timeoutMs: 600_000, everyMs: 100 },
  );
