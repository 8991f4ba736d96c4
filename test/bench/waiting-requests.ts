import { randomUUID } from "node:crypto";
import { sql } from "../../hub/db/orm.ts";
import { waitKey } from "../../hub/db/queries/workflow-wakes.ts";
import { workflows } from "../../hub/db/schema/index.ts";
import { createMaasClient } from "../../hub/maas/client.ts";
import { ROLL_CALL_MS } from "../../hub/watcher/roll-call.ts";
import { startWatcher } from "../../hub/watcher/watcher.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import { quietLog } from "../support/log.ts";
import { readCounters, totalRequests } from "../support/simulator-counters.ts";
import { insertSite } from "../support/site.ts";
import { until } from "../support/until.ts";
import { type Bench, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";
import { type FleetRegion, startFleetRegion } from "./fleet-regions.ts";

const WAITING = [0, 50, 500] as const;
const MACHINES = 500;
/** The benchmark's watcher polls ten times as often as by default, so that six seconds contain as many polls as a real minute. */
const INTERVAL_MS = 500;
const DEFAULT_INTERVAL_MS = 5_000;
/**
 * The number of a watcher's polls in eight minutes at the default interval. The number covers eight minutes because the hub reads the ids of all
 * machines every four minutes.
 */
const POLLS = 96;

/** Measures how many requests one hub with three sites sends to MAAS in a minute while workflows wait for their machines. */
export async function measureWaitingRequests(stateDir: string): Promise<Figure[]> {
  return withDatabase(stateDir, async (bench) => {
    const regions = await Promise.all(WAITING.map(() => startFleetRegion(stateDir, MACHINES)));
    try {
      return await watchAll(bench, regions);
    } finally {
      await Promise.all(regions.map((region) => region.stop()));
    }
  });
}

async function watchAll(bench: Bench, regions: readonly FleetRegion[]): Promise<Figure[]> {
  const { db, inTx } = bench.database;
  const sites = new Map<string, FleetRegion>();
  for (const [n, region] of regions.entries()) sites.set(await addSite(bench, region, WAITING[n] ?? 0), region);
  const watcher = startWatcher({
    db,
    inTx,
    hubId: randomUUID(),
    clientFor: async (siteId, signal) => {
      const region = sites.get(siteId);
      if (region === undefined) throw new Error(`no region for ${siteId}`);
      return createMaasClient({ baseUrl: region.url, apiKey: new Secret(region.key), signal });
    },
    log: quietLog,
    pollIntervalMs: INTERVAL_MS,
    sweepIntervalMs: 3_600_000,
    rollCallMs: (ROLL_CALL_MS * INTERVAL_MS) / DEFAULT_INTERVAL_MS,
  });
  try {
    const counts = await Promise.all(regions.map(requestsPerPoll));
    const perMinute = counts.map((perPoll) => (perPoll * 60_000) / DEFAULT_INTERVAL_MS);
    return perMinute.map((value, n) => ({
      name: `MAAS requests per minute, ${WAITING[n]} nodes waiting`,
      value,
      unit: "requests/min",
      note: `of ${MACHINES} machines, ${POLLS} polls; at the default interval of ${DEFAULT_INTERVAL_MS} ms; ratio to none ${(value / (perMinute[0] ?? value)).toFixed(3)}`,
    }));
  } finally {
    await watcher.close();
  }
}

async function addSite({ database }: Bench, region: FleetRegion, waiting: number): Promise<string> {
  const siteId = await insertSite(database.db, { name: `waiting-${waiting}`, apiBaseUrl: region.url });
  const rows = region.systemIds.slice(0, waiting).map((systemId) => ({
    id: randomUUID() as WorkflowId,
    kind: "bench",
    status: "running" as const,
    stage: "wait",
    input: {},
    siteId,
    waitOn: waitKey.machine(siteId, systemId),
    wakeAt: sql`now() + interval '1 hour'`,
  }));
  if (rows.length > 0) await database.db.insert(workflows).values(rows);
  return siteId;
}

/**
 * Returns the average number of requests to MAAS per poll of the watcher. The average leaves out the first 14 polls of the watcher, which contain the
 * first sweep.
 */
async function requestsPerPoll({ control }: FleetRegion): Promise<number> {
  const polls = async (): Promise<{ polls: number; all: number }> => {
    const counters = await readCounters(control);
    return { polls: counters.requests["GET events/?op=query"] ?? 0, all: totalRequests(counters) };
  };
  await until("the first polls", async () => ((await polls()).polls >= 14 ? true : undefined), { timeoutMs: 120_000 });
  const before = await polls();
  const after = await until(
    "the polls that are counted",
    async () => {
      const now = await polls();
      return now.polls - before.polls >= POLLS ? now : undefined;
    },
    { timeoutMs: 300_000 },
  );
  return (after.all - before.all) / (after.polls - before.polls);
}
