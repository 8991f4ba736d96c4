import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { strippedName, stripTypes } from "../../packaging/strip-types.ts";
import { percentile } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";

const STARTS = 21;
const REPOSITORY = new URL("../..", import.meta.url).pathname;
const COMMANDS = [["--help"], ["version", "--client"], ["get", "nodes", "--help"], ["list-nodes", "--help"]];

/** Measures the processor time of commands that ask no hub, and how many times as much it is as that of Node.js without a program. */
export async function measureCliStart(folder: string): Promise<Figure[]> {
  const main = asInPackage(folder);
  const nothing = join(folder, "nothing.js");
  writeFileSync(nothing, "");
  const programs = [[nothing], ...COMMANDS.map((command) => [main, ...command])];
  const times = programs.map((): number[] => []);
  // The programs take turns, so that other work of the machine slows all of them alike. The first turn fills the cache of compiled code.
  for (let turn = 0; turn <= STARTS; turn += 1)
    for (const [index, program] of programs.entries()) {
      const ms = await processorMs(program, folder);
      if (turn > 0) times[index]?.push(ms);
    }
  const [bare = 0, ...medians] = times.map((values) => percentile(values, 0.5));
  return [
    { name: "Node.js without a program, processor time, p50", value: bare, unit: "ms", note: `${STARTS} starts` },
    ...medians.map((median, index) => ({
      name: `muster ${COMMANDS[index]?.join(" ")}, times Node.js alone, p50`,
      value: median / bare,
      unit: "",
      note: `${median.toFixed(0)} ms, ${STARTS} starts with a filled cache of compiled code`,
    })),
  ];
}

/** Writes the program with its types stripped, as the Debian package has it, and returns the path of its main file. */
function asInPackage(folder: string): string {
  rmSync(folder, { recursive: true, force: true });
  for (const part of ["hub/cli", "shared"]) {
    mkdirSync(join(folder, part), { recursive: true });
    cpSync(join(REPOSITORY, part), join(folder, part), { recursive: true });
    for (const file of readdirSync(join(folder, part), { recursive: true, encoding: "utf8" })) {
      const path = join(folder, part, file);
      if (!path.endsWith(".ts")) continue;
      writeFileSync(strippedName(path), stripTypes(readFileSync(path, "utf8")));
      rmSync(path);
    }
  }
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
  return join(folder, "hub/cli/main.js");
}

/** The processor time of a process in user and system mode, which bash measures. */
async function processorMs(program: readonly string[], home: string): Promise<number> {
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  const script = 'TIMEFORMAT="%3U %3S"; time "$0" "$@" >/dev/null';
  const { stderr } = await execa("bash", ["-c", script, process.execPath, ...program], {
    env: { ...env, HOME: home, XDG_CACHE_HOME: "" },
    extendEnv: false,
  });
  const [user = 0, system = 0] = stderr.trim().split(" ").map(Number);
  return (user + system) * 1000;
}
