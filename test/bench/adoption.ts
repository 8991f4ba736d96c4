import { join } from "node:path";
import { z } from "zod";
import { startChild } from "../support/child.ts";
import { SKU, seedSite } from "../support/onboarding-rig.ts";
import { type Bench, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";
import { startFleetRegion } from "./fleet-regions.ts";

/** The second size is the most machines that one request adopts. */
const SIZES = [100, 2_000] as const;

const Cost = z.object({ result: z.number(), seconds: z.number(), statements: z.number(), requests: z.number() });
const Costs = z.object({ plan: Cost, first: Cost, again: Cost, commands: Cost });
const Adopted = z.object({ adopted: z.array(Costs), peakMiB: z.number(), grownMiB: z.number() });

/** Measures what the adoption of running machines costs hub and MAAS, by the number of machines in the request. */
export const measureAdoption = (stateDir: string): Promise<Figure[]> =>
  withDatabase(stateDir, async (bench) => {
    const { adopted, peakMiB, grownMiB } = await adoptionsOf(bench);
    const memory = {
      name: "adoption, peak memory of the hub",
      value: peakMiB,
      unit: "MiB",
      note: `resident, all requests; ${grownMiB.toFixed(0)} MiB above what it had after it read the machines`,
    };
    return [...adopted.flatMap((cost, index) => figuresOf(cost, SIZES[index] ?? 0)), memory];
  });

async function adoptionsOf(bench: Bench): Promise<z.output<typeof Adopted>> {
  const machines = SIZES.reduce((sum, size) => sum + size, 0);
  const region = await startFleetRegion(bench.stateDir, machines);
  const { siteId, profileId } = await seedSite(bench, region.url);
  const hub = startChild({
    name: "adopting hub",
    script: "test/bench/adopting-hub.ts",
    env: {
      DATABASE_URL: bench.url,
      MAAS_URL: region.url,
      MAAS_KEY: region.key,
      SITE_ID: siteId,
      PROFILE_ID: profileId,
      SKU,
      SIZES: SIZES.join(),
    },
    logFile: join(bench.stateDir, "adopting-hub.log"),
  });
  try {
    return Adopted.parse(await hub.ready);
  } finally {
    await hub.stop();
    await region.stop();
  }
}

function figuresOf({ plan, first, again, commands }: z.output<typeof Costs>, size: number): Figure[] {
  if (plan.result !== size || first.result !== size || again.result !== 0 || commands.result !== size)
    throw new Error(`not every machine was adopted once: ${JSON.stringify({ plan, first, again, commands })}`);
  const of = `adoption of ${size} machines`;
  const others = (what: "statements" | "requests"): Pick<Figure, "value" | "note"> => ({
    value: first[what],
    note: `plan: ${plan[what]}; the same request again: ${again[what]}; commands for all hosts: ${commands[what]}`,
  });
  const note = `plan: ${plan.seconds.toFixed(2)} s; the same request again: ${again.seconds.toFixed(2)} s; commands for all hosts: ${commands.seconds.toFixed(2)} s`;
  return [
    { name: of, value: first.seconds, unit: "s", note },
    { name: `${of}, SQL statements`, unit: "statements", ...others("statements") },
    { name: `${of}, MAAS requests`, unit: "requests", ...others("requests") },
  ];
}
