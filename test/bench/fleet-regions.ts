import { join } from "node:path";
import { z } from "zod";
import { startChild } from "../support/child.ts";

export interface FleetRegion {
  readonly url: string;
  readonly control: string;
  readonly key: string;
  readonly systemIds: readonly string[];
  stop(): Promise<void>;
}

const Ready = z.object({
  listening: z.string(),
  control: z.string(),
  key: z.string(),
  systemIds: z.array(z.string()),
});

export async function startFleetRegion(stateDir: string, machines: number): Promise<FleetRegion> {
  const child = startChild({
    name: "fleet region",
    script: "test/bench/fleet-region.ts",
    env: { FLEET_MACHINES: String(machines) },
    logFile: join(stateDir, "fleet-regions.log"),
  });
  const { listening, control, key, systemIds } = Ready.parse(await child.ready);
  return { url: listening, control, key, systemIds, stop: () => child.stop() };
}
