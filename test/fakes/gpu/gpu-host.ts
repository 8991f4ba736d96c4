import { createHash, randomUUID } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";
import { type System, systemAt } from "../../../agent/system/system.ts";
import { readProcess } from "../../../agent/system/workers/processes.ts";
import { HostFolder, quietAgentLog } from "../hub/host-folder.ts";

const SOURCE = join(import.meta.dirname, "libcuda.c");
const BUILT = join(import.meta.dirname, "../../../.muster/gpu");
const LIBRARY_FOLDER = "usr/lib/x86_64-linux-gnu";
/** The command that starts the agent's program and also the agent's workers. */
const AGENT_PROGRAM = [process.execPath, join(import.meta.dirname, "../../../agent/main.ts")];

/**
 * A stand-in for systemd-run, which starts the given program in a new session and ends the program at its deadline. As under systemd, the started
 * program outlives the process that called the stand-in for systemd-run.
 */
const SYSTEMD_RUN = `deadline=600
while [ "$1" != -- ]; do
  case $1 in --property=RuntimeMaxSec=*) deadline=\${1##*=} ;; esac
  shift
done
shift
setsid "$@" >>"$MUSTER_ROOT/worker.log" 2>&1 </dev/null &
unit=$!
setsid sh -c 'tenths=$(($2 * 10)); while kill -0 $1 && [ $tenths -gt 0 ]; do sleep 0.1; tenths=$((tenths - 1)); done; kill $1; sleep 1; kill -9 $1' \\
  sh $unit $deadline >/dev/null 2>&1 </dev/null &
exit 0`;

/** True if this computer has gcc and the headers of the C library. */
export const hasCompiler =
  execaSync("gcc", ["-fsyntax-only", "-x", "c", "-"], { input: "#include <stdio.h>\n", reject: false }).exitCode === 0;

export const gpuUuid = (number: number): string => `GPU-00112233-4455-6677-8899-${String(number).padStart(12, "0")}`;
export const PCI_ADDRESS = "0000:3b:00.0";

/**
 * Compiles `libcuda.c`, the stand-in for NVIDIA's driver library, once for each version of its source. Several test files may compile `libcuda.c` at
 * the same time, because each test file renames a complete library into place.
 */
function compiled(undefinedSymbol: string): string {
  const version = createHash("sha256").update(readFileSync(SOURCE)).digest("hex").slice(0, 16);
  const library = join(BUILT, `libcuda-${version}${undefinedSymbol}.so`);
  if (existsSync(library)) return library;
  mkdirSync(BUILT, { recursive: true });
  const without = undefinedSymbol === "" ? [] : [`-D${undefinedSymbol}=${undefinedSymbol}_newer`];
  const fresh = `${library}.${randomUUID()}`;
  execaSync("gcc", ["-shared", "-fPIC", "-O2", ...without, "-o", fresh, SOURCE]);
  renameSync(fresh, library);
  return library;
}

/** A folder that stands for a host with systemd and GPUs. The driver of the simulated GPUs is a real shared library, compiled from `libcuda.c`. */
export class GpuHost extends HostFolder {
  readonly gpuSystem: System;

  constructor() {
    super();
    this.tool("systemd-run", SYSTEMD_RUN);
    mkdirSync(this.path("run/systemd/system"), { recursive: true });
    this.gpuSystem = systemAt(this.root, quietAgentLog, AGENT_PROGRAM);
    mkdirSync(this.path(LIBRARY_FOLDER), { recursive: true });
    this.control("memory 12582912");
    this.install("libcuda.so.1");
    this.install("libnvidia-ml.so.1");
  }

  /** Installs the stand-in for NVIDIA's driver library, which lacks the symbol `undefinedSymbol` as the library of an old driver does. */
  install(name: string, undefinedSymbol = ""): void {
    copyFileSync(compiled(undefinedSymbol), this.path(join(LIBRARY_FOLDER, name)));
  }

  /** Sets the faults that the simulated GPU driver shows, for all GPUs or for one GPU. */
  control(text: string, uuid?: string): void {
    this.write(uuid === undefined ? "gpu/control" : `gpu/control-${uuid}`, `${text}\n`);
  }

  isAlive(pid: number): boolean {
    const process = readProcess(pid);
    return process !== null && process.state !== "Z";
  }

  /** Removes systemd from the simulated host, and returns the host as the agent sees it. */
  systemWithoutSystemd(): System {
    rmSync(this.path("run/systemd"), { recursive: true });
    return systemAt(this.root, quietAgentLog, AGENT_PROGRAM);
  }

  /** Returns how many bytes of simulated GPU memory the living processes hold. */
  heldBytes(): number {
    return readdirSync(this.path("gpu"))
      .flatMap((name) => /^held-(\d+)$/.exec(name)?.[1] ?? [])
      .filter((pid) => this.isAlive(Number(pid)))
      .reduce((sum, pid) => sum + Number(this.read(`gpu/held-${pid}`)), 0);
  }
}
