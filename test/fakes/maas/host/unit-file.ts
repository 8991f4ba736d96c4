import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The settings of a systemd unit that the simulated hosts understand. */
export interface ServiceUnit {
  name: string;
  type: string;
  execStartPre: string[][];
  execStart: string[][];
  restart: string;
  /** Exit statuses of the service after which the simulated host does not restart the service. */
  finalStatuses: number[];
  environment: Record<string, string>;
}

const UNIT_FOLDERS = [
  "etc/systemd/system",
  "run/systemd/system",
  "usr/local/lib/systemd/system",
  "lib/systemd/system",
  "usr/lib/systemd/system",
];

export function findUnitFile(root: string, name: string): string | null {
  return UNIT_FOLDERS.map((folder) => join(root, folder, name)).find((path) => existsSync(path)) ?? null;
}

/** Splits a command line of a systemd unit: blanks separate words, and quotes keep blanks inside a word. */
function splitCommand(line: string): string[] {
  const words: string[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g;
  for (const match of line.matchAll(pattern))
    words.push(match[1]?.replace(/\\(.)/g, "$1") ?? match[2] ?? match[3] ?? "");
  return words;
}

function assignments(line: string): [string, string][] {
  return splitCommand(line.replace(/=(["'])/g, "=$1")).flatMap((word): [string, string][] => {
    const equals = word.indexOf("=");
    return equals > 0 ? [[word.slice(0, equals), word.slice(equals + 1).replace(/^["']|["']$/g, "")]] : [];
  });
}

function environmentFile(root: string, value: string): [string, string][] {
  const optional = value.startsWith("-");
  const path = join(root, optional ? value.slice(1) : value);
  if (!existsSync(path)) {
    if (optional) return [];
    throw new Error(`Failed to load environment files: ${path} does not exist.`);
  }
  const lines = readFileSync(path, "utf8").split("\n");
  return lines
    .filter((line) => !/^\s*[#;]/.test(line))
    .flatMap((line): [string, string][] => {
      const match = /^\s*([A-Za-z_]\w*)=(.*)$/.exec(line);
      return match?.[1] === undefined ? [] : [[match[1], (match[2] ?? "").trim().replace(/^(["'])(.*)\1$/, "$2")]];
    });
}

export function readServiceUnit(root: string, name: string, path: string): ServiceUnit {
  const unit: ServiceUnit = {
    name,
    type: "simple",
    execStartPre: [],
    execStart: [],
    restart: "no",
    finalStatuses: [],
    environment: {},
  };
  let section = "";
  for (const raw of readFileSync(path, "utf8")
    .replace(/\\\r?\n/g, " ")
    .split(/\r?\n/)) {
    const line = raw.trim();
    if (line === "" || /^[#;]/.test(line)) continue;
    if (line.startsWith("[")) {
      section = line;
      continue;
    }
    const equals = line.indexOf("=");
    if (section !== "[Service]" || equals < 0) continue;
    applySetting(root, unit, line.slice(0, equals).trim(), line.slice(equals + 1).trim());
  }
  return unit;
}

function applySetting(root: string, unit: ServiceUnit, key: string, value: string): void {
  // A prefix such as - or + before a command in a systemd unit changes how systemd treats failures or users. `applySetting` removes prefixes of
  // commands, because the simulated host runs a command in the same way without its prefix.
  const command = (): string[] => splitCommand(value.replace(/^[-+!@:]+/, ""));
  if (key === "Type") unit.type = value;
  else if (key === "Restart") unit.restart = value;
  else if (key === "RestartPreventExitStatus") unit.finalStatuses = splitCommand(value).map(Number);
  else if (key === "ExecStartPre") unit.execStartPre.push(command());
  else if (key === "ExecStart" && value === "") unit.execStart = [];
  else if (key === "ExecStart") unit.execStart.push(command());
  else if (key === "Environment") Object.assign(unit.environment, Object.fromEntries(assignments(value)));
  else if (key === "EnvironmentFile") Object.assign(unit.environment, Object.fromEntries(environmentFile(root, value)));
}
