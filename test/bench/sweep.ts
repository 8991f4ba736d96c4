import { join } from "node:path";
import { z } from "zod";
import { startChild } from "../support/child.ts";
import { type Bench, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";
import { startFleetRegion } from "./fleet-regions.ts";

const SIZES = [1_000, 10_000] as const;

const Took = z.object({ seconds: z.number(), statements: z.number(), requests: z.number() });
const Swept = z.object({ first: Took, again: Took, peakMiB: z.number(), grownMiB: z.number() });

/**
 * Measures what a sweep of all machines costs hub and MAAS, by the number of machines. The benchmark first measures a sweep that finds only new
 * machines, and then a sweep that finds no change.
 */
export async function measureSweep(stateDir: string): Promise<Figure[]> {
  return withDatabase(stateDir, async (bench) => {
    const figures: Figure[] = [];
    for (const machines of SIZES) figures.push(...(await sweepOf(bench, machines)));
    return figures;
  });
}

async function sweepOf(bench: Bench, machines: number): Promise<Figure[]> {
  const region = await startFleetRegion(bench.stateDir, machines);
  const hub = startChild({
    name: "sweeping hub",
    script: "test/bench/sweep-hub.ts",
    env: { DATABASE_URL: bench.url, MAAS_URL: region.url, MAAS_KEY: region.key },
    logFile: join(bench.stateDir, "sweep-hub.log"),
  });
  try {
    const swept = Swept.parse(await hub.ready);
    const of = `sweep of ${machines} machines`;
    const both = (what: "statements" | "requests"): Pick<Figure, "value" | "note"> => ({
      value: swept.first[what],
      note: `the first sweep; one that finds nothing changed: ${swept.again[what]}`,
    });
    return [
      {
        name: `${of}, all new`,
        value: swept.first.seconds,
        unit: "s",
        note: "the simulated region renders for most of it",
      },
      { name: `${of}, none changed`, value: swept.again.seconds, unit: "s", note: "the same" },
      {
        name: `${of}, peak memory of the hub`,
        value: swept.peakMiB,
        unit: "MiB",
        note: `resident, two sweeps; ${swept.grownMiB.toFixed(0)} MiB above what it had before`,
      },
      { name: `${of}, SQL statements`, unit: "statements", ...both("statements") },
      { name: `${of}, MAAS requests`, unit: "requests", ...both("requests") },
    ];
  } finally {
    await hub.stop();
    await region.stop();
  }
}
