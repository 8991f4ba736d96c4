import { type ChildProcess, spawn } from "node:child_process";
import { extname } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { RESIDUE_ITEM_NAMES, type ResidueItem } from "../../shared/residue/items.ts";
import {
  MAX_SNAPSHOT_BYTES,
  ResidueReading,
  type ResidueSnapshot,
  type ResidueTenant,
  unreadableBecause,
} from "../../shared/residue/snapshot.ts";
import { messageOf } from "../message-of.ts";
import { itemsFor } from "./residue/read-item.ts";
import { toolEnvironment } from "./tool-process.ts";
import { isSystemdAt } from "./workers/launch.ts";

/**
 * How long a residue snapshot (a record of the host that shows what a tenant left) may take, in milliseconds. Each item of the residue snapshot has a
 * deadline of its own, so the deadline of the whole snapshot ends only a child process that hangs.
 */
const SNAPSHOT_DEADLINE_MS = 60 * 60_000;
/** How many seconds after the deadline of the residue snapshot systemd ends an abandoned child process. */
const SCOPE_LEFT_SECONDS = 60;
const STDERR_KEPT = 2_000;
/**
 * The limit, in megabytes, of the JavaScript heap of the child process that reads the residue snapshot. A tenant may make so many files that the
 * child process exceeds its heap limit while it reads the residue snapshot. When the child process that reads the residue snapshot exceeds its heap
 * limit, the process ends, and its unread items count as unreadable.
 */
const HEAP_MEGABYTES = 384;
/** The memory limit, in systemd's notation, of the child process that reads the residue snapshot and of its tools. */
const MEMORY_MAX = "768M";

export interface ResidueOrder {
  readonly tenant: ResidueTenant | null;
  readonly items?: readonly ResidueItem[];
  /** The pause, in milliseconds, between two reads of a host state that changes by itself, for example of the list of processes. */
  readonly pauseMs: number;
  readonly deadlineMs?: number;
  readonly onItem?: (item: ResidueItem, read: number, all: number) => void;
  readonly signal?: AbortSignal;
}

const Line = z.strictObject({
  item: z.enum(RESIDUE_ITEM_NAMES as [ResidueItem, ...ResidueItem[]]),
  reading: ResidueReading,
});

/**
 * Reads a host's residue snapshot, which shows what a tenant left, in a child process with low priority. After the deadline of the residue snapshot,
 * `readResidue` abandons a child process that hangs in the kernel. Items of the residue snapshot that the child process has not read count as
 * unreadable.
 */
export async function readResidue(root: string, order: ResidueOrder): Promise<ResidueSnapshot> {
  const items = order.items ?? itemsFor(order.tenant);
  const child = startChild({ root, tenant: order.tenant, items, pauseMs: order.pauseMs });
  const readings = new Map<ResidueItem, ResidueReading>();
  const tell = (): void => {
    const next = items[readings.size];
    if (next !== undefined) order.onItem?.(next, readings.size, items.length);
  };
  tell();
  const end = await childEnd(child, order, (line) => {
    const { item, reading } = Line.parse(JSON.parse(line));
    readings.set(item, reading);
    tell();
  });
  order.signal?.throwIfAborted();
  if (readings.size === 0 && items.length > 0) throw new Error(`The host's state could not be read: ${end}`);
  return withinSize(
    items.map((item) => [item, readings.get(item) ?? unreadableBecause(`The item was not read: ${end}`)] as const),
  );
}

function startChild(
  order: Pick<ResidueOrder, "tenant" | "items" | "pauseMs"> & { readonly root: string },
): ChildProcess {
  const program = new URL(`./residue/main${extname(import.meta.filename)}`, import.meta.url).pathname;
  const [command = "nice", ...args] = childCommand(order.root === "/" && isSystemdAt("/"), program);
  return spawn(command, [...args, JSON.stringify(order)], {
    stdio: ["ignore", "pipe", "pipe"],
    // The child process that reads the residue snapshot gets only the environment variables that the host's tools and Node.js's compile cache need.
    env: { ...toolEnvironment("/"), ...compiledCode() },
  });
}

/**
 * The environment variables of Node.js's compile cache, if the agent uses the cache. With Node.js's compile cache, the child process that reads the
 * residue snapshot starts in half of the processor time.
 */
function compiledCode(): Record<string, string> {
  const names = ["NODE_COMPILE_CACHE", "NODE_COMPILE_CACHE_PORTABLE"];
  return Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
}

/**
 * A scope of systemd limits the memory of the child process, so that the memory of the agent's unit is not used up. A scope of systemd changes
 * neither the parent nor the pipes of the child process.
 */
export function childCommand(hasSystemd: boolean, program: string): string[] {
  const properties = [`MemoryMax=${MEMORY_MAX}`, `RuntimeMaxSec=${SNAPSHOT_DEADLINE_MS / 1000 + SCOPE_LEFT_SECONDS}`];
  const scope = ["systemd-run", "--scope", "--quiet", "--collect", ...properties.map((one) => `--property=${one}`)];
  const permission = process.execArgv.filter((option) => option.startsWith("--permission"));
  return [
    ...(hasSystemd ? [...scope, "--"] : []),
    ...["nice", "-n", "19", "ionice", "-c", "3", "-t"],
    ...[process.execPath, ...permission, `--max-old-space-size=${HEAP_MEGABYTES}`, program],
  ];
}

/** Waits until the child process that reads the residue snapshot has ended or its deadline has passed, and returns how it ended. */
function childEnd(child: ChildProcess, order: ResidueOrder, onLine: (line: string) => void): Promise<string> {
  return new Promise((resolve) => {
    let said = "";
    const finish = (text: string): void => {
      clearTimeout(timer);
      order.signal?.removeEventListener("abort", stop);
      child.stdout?.destroy();
      child.stderr?.destroy();
      child.unref();
      resolve(text);
    };
    const stop = (): void => {
      child.kill("SIGKILL");
      finish("the task was cancelled.");
    };
    const deadlineMs = order.deadlineMs ?? SNAPSHOT_DEADLINE_MS;
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      finish(`the host did not answer within ${deadlineMs / 1000} s.`);
    }, deadlineMs);
    order.signal?.addEventListener("abort", stop, { once: true });
    if (order.signal?.aborted === true) return stop();
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-STDERR_KEPT);
    });
    let fault = "";
    if (child.stdout !== null)
      createInterface({ input: child.stdout }).on("line", (line) => {
        try {
          onLine(line);
        } catch (error) {
          fault = `the answer could not be parsed: ${messageOf(error)}`;
        }
      });
    child.once("error", (error) => finish(error.message));
    child.once("close", (status, signal) =>
      finish(fault || `the reader ended with ${status ?? signal}. ${said}`.trim()),
    );
  });
}

/**
 * Marks items of the residue snapshot as unreadable if they do not fit into MAX_SNAPSHOT_BYTES. The order of the items in a residue snapshot is
 * fixed, so that an unchanged host always gives the same snapshot.
 */
function withinSize(readings: readonly (readonly [ResidueItem, ResidueReading])[]): ResidueSnapshot {
  let left = MAX_SNAPSHOT_BYTES;
  return Object.fromEntries(
    readings.map(([item, reading]) => {
      const bytes = JSON.stringify(reading).length + item.length + 4;
      if (bytes > left && "entries" in reading)
        return [
          item,
          unreadableBecause(`The snapshot has more than ${MAX_SNAPSHOT_BYTES} bytes, so this item did not fit.`),
        ];
      left -= bytes;
      return [item, reading];
    }),
  );
}
