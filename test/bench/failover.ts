import { join } from "node:path";
import { Client } from "pg";
import { openDatabase } from "../../hub/db/client.ts";
import type { Binaries } from "../../hub/db/embedded/binaries.ts";
import { migrate } from "../../hub/db/migrate.ts";
import { sql } from "../../hub/db/orm.ts";
import { quietLog } from "../support/log.ts";
import { type PostgresPair, pairPrograms, startPostgresPair } from "../support/postgres-pair.ts";
import { until } from "../support/until.ts";
import { insertRows, startEngineHub } from "./bench-hubs.ts";
import { TIMED } from "./bench-workflow.ts";
import type { Figure } from "./figure.ts";

const ROUNDS = 5;
/** A workflow is due every 20 ms for a minute, so that at each moment a hub has something to move. */
const DUE = Array.from({ length: 3_000 }, (_, index) => index * 20);

/**
 * Measures a failover: how soon two hubs move workflows on the promoted standby server after `kill -9` of the primary PostgreSQL server, or after
 * SIGSTOP of all its processes, which leaves connections open and silent as a power loss does. The benchmark promotes the standby
 * server at once. Without an installed PostgreSQL with `pg_basebackup` there is no figure.
 */
export async function measureFailover(stateDir: string): Promise<Figure[]> {
  const programs = await pairPrograms();
  if (programs === null) {
    process.stderr.write("SKIPPED: no PostgreSQL with pg_basebackup is installed (Debian package postgresql)\n");
    return [];
  }
  return [
    ...(await measureRounds(programs, join(stateDir, "killed"), "kill -9", (pair) => pair.killPrimary())),
    ...(await measureRounds(programs, join(stateDir, "silent"), "SIGSTOP", (pair) => pair.hangPrimary())),
  ];
}

async function measureRounds(
  programs: Binaries,
  stateDir: string,
  loss: string,
  lose: (pair: PostgresPair) => Promise<void>,
): Promise<Figure[]> {
  const rounds: Round[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const folder = join(stateDir, String(round));
    const pair = await startPostgresPair(programs, folder);
    try {
      rounds.push(await failOver(pair, folder, () => lose(pair)));
    } finally {
      await pair.stop();
    }
  }
  const note = `${ROUNDS} rounds, two hubs, synchronous replication, promotion at once`;
  const figures = (name: string, of: (round: Round) => number): Figure[] => {
    const seconds = rounds.map(of).toSorted((a, b) => a - b);
    return [
      { name: `failover, ${name}, median`, value: seconds[Math.floor(ROUNDS / 2)] ?? Number.NaN, unit: "s", note },
      { name: `failover, ${name}, max`, value: seconds.at(-1) ?? Number.NaN, unit: "s", note },
    ];
  };
  return [
    ...figures(`from ${loss} until the standby server is promoted`, ({ promoted }) => promoted),
    ...figures(`from ${loss} until moves go on`, ({ moved }) => moved),
  ];
}

interface Round {
  readonly promoted: number;
  readonly moved: number;
}

async function failOver(pair: PostgresPair, stateDir: string, lose: () => Promise<void>): Promise<Round> {
  await migrate(pair.url);
  const database = openDatabase({ url: pair.url, poolSize: 2, applicationName: "muster-bench-reader", log: quietLog });
  const bench = { url: pair.url, database, stateDir };
  await database.db.execute(sql`create table bench_hubs (hub_id uuid, statements int, idle_per_second float8)`);
  const hubs = [await startEngineHub(bench), await startEngineHub(bench)];
  try {
    await insertRows(bench, TIMED, DUE);
    await until("both hubs move workflows", async () => {
      const { rows } = await database.db.execute(
        sql`select from workflow_events where hub_id is not null group by hub_id`,
      );
      return rows.length === hubs.length ? true : undefined;
    });
    const lostAt = Date.now();
    await lose();
    await pair.promote();
    const promotedAt = Date.now();
    const movedAt = await firstMove(pair.standbyUrl, promotedAt);
    return { promoted: (promotedAt - lostAt) / 1000, moved: (movedAt - lostAt) / 1000 };
  } finally {
    for (const { child } of hubs) child.kill("SIGKILL");
    await Promise.all(hubs.map(({ child }) => child.gone));
    await database.close();
  }
}

/** Returns the time of the first move after the promotion. Servers and benchmark share one clock. */
async function firstMove(url: string, promotedAt: number): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await until("a hub moves a workflow on the promoted server", async () => {
      const { rows } = await client.query<{ at: Date | null }>(
        "select min(occurred_at) as at from workflow_events where occurred_at > $1",
        [new Date(promotedAt)],
      );
      return rows[0]?.at?.getTime();
    });
  } finally {
    await client.end();
  }
}
