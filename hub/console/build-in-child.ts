import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("./build/main.ts", import.meta.url));
const DEADLINE_MS = 180_000;
const MOST_OUTPUT = 16_384;
const LAST_LINES = 20;
/**
 * The number of console builds from earlier sources that the hub keeps, for other hubs that run from the checkout and for a return to an earlier
 * commit.
 */
const KEPT_BUILDS = 3;
const UNFINISHED = "unfinished-";
const UNFINISHED_FOR_MS = 3_600_000;

/** The error of a failed console build, with the last lines of the build's output for the operator. */
export class BuildError extends Error {
  readonly lines: readonly string[];
  constructor(message: string, output: string) {
    super(message);
    this.lines = output.trimEnd().split("\n").slice(-LAST_LINES);
  }
}

/**
 * Builds the console into `<folder>/<version>`. Two hubs may build the same version at once: the builds have the same bytes, the first rename wins, and
 * no hub ever reads an unfinished build.
 */
export async function buildInChild(folder: string, version: string, signal: AbortSignal): Promise<string> {
  const done = join(folder, version);
  const unfinished = join(folder, `${UNFINISHED}${randomUUID()}`);
  await mkdir(unfinished, { recursive: true });
  try {
    await runBuild(unfinished, signal);
    await rename(unfinished, done).catch(async (error: NodeJS.ErrnoException) => {
      if (!["ENOTEMPTY", "EEXIST"].includes(error.code ?? "")) throw error;
    });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  await removeOld(folder, version);
  return done;
}

function runBuild(out: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    // React's production and development builds differ by NODE_ENV, so the build gets `NODE_ENV=production` and not the hub's own environment.
    const env = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "/", NODE_ENV: "production" };
    const child = spawn(process.execPath, [PROGRAM, out], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
      signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
      killSignal: "SIGKILL",
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        output = (output + chunk.toString("utf8")).slice(-MOST_OUTPUT);
      });
    child.once("error", (error) => reject(new BuildError(`the build did not run: ${error.message}`, output)));
    child.once("close", (status, killed) => {
      if (status === 0) resolve();
      else reject(new BuildError(`the build ended with ${killed ?? `status ${status}`}`, output));
    });
  });
}

async function removeOld(folder: string, present: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name !== present);
  const aged = await Promise.all(
    names.map(async (name) => {
      const at = join(folder, name);
      return { name, at, modified: (await stat(at).catch(() => null))?.mtimeMs ?? 0 };
    }),
  );
  const isUnfinished = ({ name }: { name: string }): boolean => name.startsWith(UNFINISHED);
  const older = aged.filter((one) => !isUnfinished(one)).sort((a, b) => b.modified - a.modified);
  const left = aged.filter((one) => isUnfinished(one) && one.modified < Date.now() - UNFINISHED_FOR_MS);
  for (const { at } of [...older.slice(KEPT_BUILDS - 1), ...left]) await rm(at, { recursive: true, force: true });
}
