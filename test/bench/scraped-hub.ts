/** A process that only serves metrics, and prints what its scrapes cost. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { openMetrics } from "../../hub/metrics/metrics.ts";
import { createLog } from "../../shared/log.ts";
import { percentile } from "./bench-hubs.ts";
import { countStatements } from "./counted-statements.ts";

const SCRAPES = 20;
const OPEN = "application/openmetrics-text;version=1.0.0";

const open = (freshMs: number) =>
  openMetrics({
    databaseUrl: process.env["DATABASE_URL"] ?? "",
    log: createLog("error"),
    freshMs,
    facts: {
      version: "bench",
      agents: () => 0,
      pool: () => ({ connections: 0, idle: 0, waiting: 0 }),
      secretStoreUsable: () => true,
      auditHeadsLost: () => 0,
      certificates: () => ({ hub_ca: null, admin_listener: null }),
    },
  });

async function timesOf(freshMs: number): Promise<number[]> {
  const metrics = open(freshMs);
  const times: number[] = [];
  for (let scrape = 0; scrape <= SCRAPES; scrape += 1) {
    const began = performance.now();
    await metrics.scrape(OPEN);
    times.push(performance.now() - began);
  }
  await metrics.close();
  // The first scrape also opens the connection to the database.
  return times.slice(1);
}

await timesOf(0);
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const times = await timesOf(0);
delay.disable();
const again = await timesOf(3_600_000);
const last = open(0);
await last.scrape(OPEN);
const statements = countStatements();
const { text } = await last.scrape(OPEN);
const counted = statements();
await last.close();
process.stdout.write(
  `${JSON.stringify({
    listening: "scraped",
    p50: percentile(times, 0.5),
    again: percentile(again, 0.5),
    blocked: delay.max / 1e6,
    bytes: Buffer.byteLength(text),
    statements: counted,
  })}\n`,
);
