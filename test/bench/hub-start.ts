import { join } from "node:path";
import { execa } from "execa";
import { freeHubPorts, startHubProcess } from "../support/hub-process.ts";
import { percentile, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";
import { cpuMs } from "./processor-time.ts";

const STARTS = 9;
const PARTS = ["drizzle-orm", "drizzle-orm/pg-core", "drizzle-orm/node-postgres", "drizzle-orm/node-postgres/migrator"];
const AS_MODULES = PARTS.map((part) => `await import(${JSON.stringify(part)});`).join("");
const AS_COMMON_JS = PARTS.map((part) => `require(${JSON.stringify(part)});`).join("");

export async function measureHubStart(stateDir: string): Promise<Figure[]> {
  const starts = await withDatabase(stateDir, async ({ url }) => {
    const measured: { wall: number; cpu: number }[] = [];
    // The benchmark of the hub's start ignores the first start, in which the hub also makes certificates and keys.
    for (let start = 0; start <= STARTS; start += 1) measured.push(await startOnce(url, stateDir));
    return measured.slice(1);
  });
  const bare = percentile(await processorSeconds("--input-type=module", ""), 0.5);
  const modules = await processorSeconds("--input-type=module", AS_MODULES);
  const commonJs = await processorSeconds("--input-type=commonjs", AS_COMMON_JS);
  const p50 = (name: string, values: readonly number[], note: string): Figure => ({
    name,
    value: percentile(values, 0.5),
    unit: "s",
    note,
  });
  const load = `${STARTS} processes that load what a hub loads of it; without the time of as many that load nothing`;
  return [
    p50(
      "hub start until it listens, p50",
      starts.map(({ wall }) => wall),
      `${STARTS} starts from source on a database that is there`,
    ),
    p50(
      "hub start, processor time, p50",
      starts.map(({ cpu }) => cpu),
      "the same starts, user and system",
    ),
    p50(
      "of that loading Drizzle as CommonJS, processor time, p50",
      commonJs.map((cpu) => cpu - bare),
      load,
    ),
    p50(
      "the same as ES modules, p50",
      modules.map((cpu) => cpu - bare),
      load,
    ),
  ];
}

async function startOnce(url: string, stateDir: string): Promise<{ wall: number; cpu: number }> {
  const ports = await freeHubPorts();
  const startedAt = performance.now();
  const hub = startHubProcess({ databaseUrl: url, stateDir, ports, logFile: join(stateDir, "hub.log") });
  await hub.ready;
  const wall = (performance.now() - startedAt) / 1000;
  const cpu = cpuMs(hub.pid) / 1000;
  await hub.stop();
  return { wall, cpu };
}

/** Runs `script` in several Node.js processes, and returns the processor time of each process in seconds. */
async function processorSeconds(flag: string, script: string): Promise<number[]> {
  const seconds: number[] = [];
  const told = `${script} const used = process.cpuUsage(); console.log((used.user + used.system) / 1e6);`;
  for (let load = 0; load < STARTS; load += 1) {
    const { stdout } = await execa(process.execPath, [flag, "-e", told]);
    seconds.push(Number(stdout));
  }
  return seconds;
}
