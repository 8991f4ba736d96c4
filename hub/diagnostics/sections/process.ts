import { readdir, statfs } from "node:fs/promises";
import { availableParallelism, freemem, loadavg, totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import type { HubFacts } from "../facts.ts";
import { hubSection } from "../section.ts";

const Bytes = z.number();
const Data = z.strictObject({
  pid: z.int(),
  started_at: Timestamp,
  uptime_seconds: z.int(),
  memory: z.strictObject({
    resident_bytes: Bytes,
    resident_peak_bytes: Bytes,
    heap_used_bytes: Bytes,
    heap_total_bytes: Bytes,
    heap_limit_bytes: Bytes,
    external_bytes: Bytes,
  }),
  cpu_seconds: z.strictObject({ user: z.number(), system: z.number() }),
  event_loop: z.strictObject({
    delay_median_ms: z.int(),
    delay_p99_ms: z.int(),
    delay_longest_ms: z.int(),
    utilization: z.number(),
  }),
  handles: z.array(z.strictObject({ type: z.string(), count: z.int() })),
  open_files: z.int().nullable(),
  database_pool: z.strictObject({ connections: z.int(), idle: z.int(), waiting: z.int() }),
  machine: z.strictObject({
    platform: z.string(),
    architecture: z.string(),
    cores: z.int(),
    load_average: z.array(z.number()),
    memory_bytes: Bytes,
    free_memory_bytes: Bytes,
  }),
  state_folder: z.strictObject({ bytes: Bytes, free_bytes: Bytes }).nullable(),
});

/** Returns the resources that the process holds open, by Node's own names. */
function handles(): z.input<typeof Data>["handles"] {
  const types = Map.groupBy(process.getActiveResourcesInfo(), (type) => type);
  return [...types].map(([type, all]) => ({ type, count: all.length })).sort((a, b) => b.count - a.count);
}

/**
 * Returns the number of files that the hub process holds open. `openFiles` returns null if the operating system has no folder that lists the open
 * files.
 */
const openFiles = (): Promise<number | null> =>
  readdir("/proc/self/fd").then(
    (files) => files.length,
    () => null,
  );

const space = (folder: string): Promise<z.input<typeof Data>["state_folder"]> =>
  statfs(folder).then(
    ({ blocks, bavail, bsize }) => ({ bytes: blocks * bsize, free_bytes: bavail * bsize }),
    () => null,
  );

const round = (value: number): number => Math.round(value * 100) / 100;

function figures({ pool, eventLoop }: HubFacts): Omit<z.input<typeof Data>, "open_files" | "state_folder"> {
  const memory = process.memoryUsage();
  const cpu = process.cpuUsage();
  const delay = eventLoop.delay();
  return {
    pid: process.pid,
    started_at: new Date(performance.timeOrigin).toISOString(),
    uptime_seconds: Math.round(process.uptime()),
    memory: {
      resident_bytes: memory.rss,
      resident_peak_bytes: process.resourceUsage().maxRSS * 1024,
      heap_used_bytes: memory.heapUsed,
      heap_total_bytes: memory.heapTotal,
      heap_limit_bytes: getHeapStatistics().heap_size_limit,
      external_bytes: memory.external,
    },
    cpu_seconds: { user: round(cpu.user / 1e6), system: round(cpu.system / 1e6) },
    event_loop: {
      delay_median_ms: delay.median,
      delay_p99_ms: delay.p99,
      delay_longest_ms: delay.longest,
      utilization: round(performance.eventLoopUtilization().utilization),
    },
    handles: handles(),
    database_pool: pool(),
    machine: {
      platform: process.platform,
      architecture: process.arch,
      cores: availableParallelism(),
      load_average: loadavg().map(round),
      memory_bytes: totalmem(),
      free_memory_bytes: freemem(),
    },
  };
}

export const processSection = hubSection({
  name: "process",
  about: "Figures of the hub's process since its start, and of its machine",
  data: Data,
  read: async (facts) => ({
    data: { ...figures(facts), open_files: await openFiles(), state_folder: await space(facts.stateDir) },
  }),
});
