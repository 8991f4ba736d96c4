import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { Json } from "../../../shared/json.ts";
import { isMissing } from "../files.ts";

/**
 * The files by which the agent and a worker process communicate, in a separate folder for each piece of work. The agent writes `order.json`, and only
 * the worker process that creates `started.json` performs the work. Because agent and worker process communicate by files, a restarted agent can
 * follow a worker process of the earlier agent.
 */
export const ORDER_FILE = "order.json";
export const STARTED_FILE = "started.json";
export const PROGRESS_FILE = "progress.json";
export const RESULT_FILE = "result.json";
export const LOG_FILE = "log";

/**
 * The first argument with which the agent's program runs as a worker process. The whole arguments are `worker perform <folder>` or `worker supervise
 * <folder>`.
 */
export const WORKER_ARGUMENT = "worker";
/** How many milliseconds after SIGTERM a worker process that is still alive gets SIGKILL. */
export const KILL_AFTER_MS = 10_000;

export const WorkOrder = z.strictObject({
  format: z.literal("muster-work/1"),
  kind: z.string().min(1).max(64),
  root: z.string().startsWith("/"),
  input: Json,
  /** How many seconds the work may run, counted from the start of the work. */
  deadline_seconds: z.int().min(1),
});
export type WorkOrder = z.output<typeof WorkOrder>;

/**
 * The facts that identify the worker process that began the work. Boot id, pid and start time identify a process for ever, because Linux uses each
 * pid many times.
 */
export const WorkStarted = z.strictObject({
  pid: z.int().min(1),
  start_ticks: z.string().regex(/^\d+$/),
  boot_id: z.string().min(1),
  /** The seconds from the host's boot to the start of the work, which no change of the host's clock affects. */
  uptime_seconds: z.number(),
});
export type WorkStarted = z.output<typeof WorkStarted>;

export const WorkProgressFile = z.strictObject({ step: z.string(), done: z.number(), bytes: z.number() });

export const WorkResult = z.discriminatedUnion("ok", [
  z.strictObject({ ok: z.literal(true), result: Json }),
  z.strictObject({ ok: z.literal(false), stopped: z.boolean(), message: z.string() }),
]);
export type WorkResult = z.output<typeof WorkResult>;

/** `readWorkFile` returns null if the file is missing or does not fit `schema`. */
export function readWorkFile<T>(folder: string, name: string, schema: z.ZodType<T>): T | null {
  let text: string;
  try {
    text = readFileSync(join(folder, name), "utf8");
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  const parsed = schema.safeParse(parseJson(text));
  return parsed.success ? parsed.data : null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A file of a worker process whose text is not JSON counts as missing, because its writer was killed.
    return undefined;
  }
}

/** Replaces a file in the folder of a piece of work, completely or not at all, with mode 0600. */
export function writeWorkFile(folder: string, name: string, value: unknown): void {
  const temporary = join(folder, `.${name}.${process.pid}.new`);
  writeAndSync(openSync(temporary, "w", 0o600), value);
  renameSync(temporary, join(folder, name));
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

export function createWorkFile(folder: string, name: string, value: unknown): boolean {
  let handle: number;
  try {
    handle = openSync(join(folder, name), "wx", 0o600);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
  writeAndSync(handle, value);
  return true;
}

function writeAndSync(handle: number, value: unknown): void {
  try {
    const bytes = Buffer.from(`${JSON.stringify(value)}\n`);
    for (let done = 0; done < bytes.length; ) done += writeSync(handle, bytes, done);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
