import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "../../hub/db/orm.ts";
import { maasSites } from "../../hub/db/schema/index.ts";
import { startMaasSimulator } from "../fakes/maas/simulator.ts";
import { until } from "../support/until.ts";
import { type Bench, type EngineHub, insertRows, percentile, startEngineHub, withDatabase } from "./bench-hubs.ts";
import { HOLD } from "./bench-workflow.ts";
import type { Figure } from "./figure.ts";

const KILLS = 20;
const ROWS = 8;

/** Measures a takeover: how soon after `kill -9` of a hub another hub runs the dead hub's workflows and polls its site. */
export async function measureTakeover(stateDir: string): Promise<Figure[]> {
  const maas = await startMaasSimulator({ machines: 2 });
  try {
    const { rows, polls } = await withDatabase(stateDir, (bench) =>
      killAgainAndAgain(bench, { MAAS_URL: maas.url, MAAS_KEY: maas.apiKey }),
    );
    const figures = (name: string, seconds: readonly number[]): Figure[] =>
      (
        [
          ["p50", percentile(seconds, 0.5)],
          ["max", Math.max(...seconds)],
        ] as const
      ).map(([part, value]) => ({
        name: `takeover after kill -9, ${name}, ${part}`,
        value,
        unit: "s",
        note: `${KILLS} kills at random moments, lease 3 s, one other hub alive`,
      }));
    return [...figures("all running stages", rows), ...figures("site watch, with a poll", polls)];
  } finally {
    await maas.close();
  }
}

async function killAgainAndAgain(
  bench: Bench,
  env: Readonly<Record<string, string>>,
): Promise<{ rows: number[]; polls: number[] }> {
  const { db } = bench.database;
  await db.insert(maasSites).values({
    name: "bench",
    regionCode: "bench",
    apiBaseUrl: "http://bench.invalid/MAAS",
    pxeIface: "ens19",
    pxeVlanVid: 310,
    nodePxeIface: "eno8303",
    deployUser: "u",
    deploySshIface: "eno8303",
    upstreamDnsServers: ["1.1.1.1"],
  });
  await insertRows(
    bench,
    HOLD,
    Array.from({ length: ROWS }, () => 0),
  );
  const rows: number[] = [];
  const polls: number[] = [];
  let victim = await startEngineHub(bench, env);
  for (let kill = 0; kill < KILLS; kill += 1) {
    const watch = await until("the hub holds all rows and the site", () => holdsAll(bench, victim));
    const other = await startEngineHub(bench, env);
    await sleep(Math.random() * 1_000);
    const { rows: clock } = await db.execute<{ now: string }>(sql`select now()::text as now`);
    victim.child.kill("SIGKILL");
    const killedAt = performance.now();
    const since = (): number => (performance.now() - killedAt) / 1000;
    const tookRows = until(
      "the other hub runs what the victim ran",
      async () => ((await countHeld(bench, other)) === ROWS ? since() : undefined),
      { everyMs: 20 },
    );
    const tookPoll = until(
      "the other hub has polled the site",
      async () => {
        const polled = await db.execute(
          sql`select from maas_site_watches where lease_owner = ${other.id}::uuid and fence > ${watch.fence}::bigint
            and last_poll_at > ${clock[0]?.now}::timestamptz`,
        );
        return polled.rows.length > 0 ? since() : undefined;
      },
      { everyMs: 20 },
    );
    rows.push(await tookRows);
    polls.push(await tookPoll);
    victim = other;
  }
  await victim.child.stop(0);
  return { rows, polls };
}

async function holdsAll(bench: Bench, hub: EngineHub): Promise<{ fence: string } | undefined> {
  const { rows } = await bench.database.db.execute<{ fence: string }>(
    sql`select fence from maas_site_watches where lease_owner = ${hub.id}::uuid and last_poll_at is not null`,
  );
  return (await countHeld(bench, hub)) === ROWS ? rows[0] : undefined;
}

async function countHeld({ database }: Bench, hub: EngineHub): Promise<number> {
  const { rows } = await database.db.execute<{ held: number }>(
    sql`select count(*)::int as held from workflows where lease_owner = ${hub.id}::uuid`,
  );
  return rows[0]?.held ?? 0;
}
