import { expect } from "vitest";
import { SampleClient } from "./sample-client.ts";
import type { MaasSimulator, MaasSimulatorOptions } from "./simulator.ts";
import { startMaasSimulator } from "./simulator.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "./state/site.ts";

/** A speed of the simulator at which no job becomes due by itself. Each test runs a machine's waiting jobs with `settle`. */
const STANDSTILL = 1e-6;
export const [NEW, COMMISSIONING, READY, DEPLOYED, BROKEN, DEPLOYING, ALLOCATED, FAILED_DEPLOYMENT, RELEASING] = [
  0, 1, 4, 6, 8, 9, 10, 11, 12,
] as const;

export interface Started {
  readonly simulator: MaasSimulator;
  readonly client: SampleClient;
}

const running: MaasSimulator[] = [];

/** Starts a MAAS simulator with two simulated servers and a clock that stands still. `closeAll` closes the simulators that `start` has started. */
export async function start(options: MaasSimulatorOptions = {}): Promise<Started> {
  const simulator = await startMaasSimulator({
    machines: 2,
    speed: STANDSTILL,
    timings: { bmcTimeout: 0 },
    ...options,
  });
  running.push(simulator);
  return { simulator, client: new SampleClient(simulator) };
}

export async function closeAll(): Promise<void> {
  for (const simulator of running.splice(0)) await simulator.close();
}

export type Shown = {
  system_id: string;
  status: number;
  status_name: string;
  owner: string | null;
  power_state: string;
  error_description: string;
  [field: string]: unknown;
};

function createForm(n: number, more: Record<string, string> = {}): Record<string, string> {
  return {
    hostname: `gpu${n}`,
    architecture: "amd64/generic",
    power_type: "ipmi",
    power_parameters_power_address: bmcAddress(n),
    power_parameters_power_user: SITE_BMC_USER,
    power_parameters_power_pass: SITE_BMC_PASSWORD,
    commission: "false",
    ...more,
  };
}

export async function created(client: SampleClient, n = 1, more: Record<string, string> = {}): Promise<string> {
  return (await client.get<Shown>("POST", "machines/", createForm(n, more))).system_id;
}

export async function settled(client: SampleClient, id: string): Promise<Shown> {
  return client.control<Shown>("POST", `machines/${id}/settle`);
}

export async function readied(client: SampleClient, n = 1): Promise<string> {
  const id = await created(client, n);
  await client.get("POST", `machines/${id}/?op=commission`, { testing_scripts: "none" });
  expect((await settled(client, id)).status).toBe(READY);
  return id;
}

export async function deployed(client: SampleClient, n = 1, form: Record<string, string> = {}): Promise<string> {
  const id = await readied(client, n);
  await client.get("POST", `machines/${id}/?op=deploy`, form);
  expect((await settled(client, id)).status).toBe(DEPLOYED);
  return id;
}
