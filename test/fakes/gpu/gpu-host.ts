import { createHash, randomUUID } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { execaSync } from "execa";
import { type System, systemAt } from "../../../agent/system/system.ts";
import { readProcess } from "../../../agent/system/workers/processes.ts";
import { HostFolder, KEEP_COMPILE_CACHE, quietAgentLog } from "../hub/host-folder.ts";

const SOURCES = {
  cuda: join(import.meta.dirname, "libcuda.c"),
  hip: join(import.meta.dirname, "libhip.c"),
  drm: join(import.meta.dirname, "libdrm.c"),
} as const;
const COMMON = join(import.meta.dirname, "gpu-memory.h");
const BUILT = join(import.meta.dirname, "../../../.muster/gpu");
const LIBRARY_FOLDER = "usr/lib/x86_64-linux-gnu";
/** The command that starts the agent's program and also the agent's workers. */
const AGENT_PROGRAM = [process.execPath, join(import.meta.dirname, "../../../agent/main.ts")];

/**
 * A stand-in for systemd-run, which starts the given worker in a new session and ends it at its deadline. The deadline counts from the start of the
 * worker's work, so that a loaded computer does not end a worker before its work. As under systemd, the program
 * outlives the process that called the stand-in for systemd-run.
 */
const SYSTEMD_RUN = `${KEEP_COMPILE_CACHE}
deadline=600
while [ "$1" != -- ]; do
  case $1 in --property=RuntimeMaxSec=*) deadline=\${1##*=} ;; esac
  shift
done
shift
setsid "$@" >>"$MUSTER_ROOT/worker.log" 2>&1 </dev/null &
unit=$!
for folder; do :; done
setsid sh -c 'while kill -0 $1 && [ ! -e "$3/started.json" ]; do sleep 0.1; done; tenths=$(($2 * 10)); while kill -0 $1 && [ $tenths -gt 0 ]; do sleep 0.1; tenths=$((tenths - 1)); done; kill $1; sleep 1; kill -9 $1' \\
  sh $unit $deadline "$folder" >/dev/null 2>&1 </dev/null &
exit 0`;

export const hasCompiler =
  execaSync("gcc", ["-fsyntax-only", "-x", "c", "-"], { input: "#include <stdio.h>\n", reject: false }).exitCode === 0;

export const gpuUuid = (number: number): string => `GPU-00112233-4455-6677-8899-${String(number).padStart(12, "0")}`;
export const PCI_ADDRESS = "0000:3b:00.0";
export const amdGpuUuid = (number: number): string => `GPU-00112233445566${number.toString(16).padStart(2, "0")}`;
export const AMD_PCI_ADDRESS = "0000:c1:00.0";
export const ROCM_FOLDER = "opt/rocm-6.3.1/lib";

/**
 * Compiles a stand-in for a driver library once for each version of its source. Several test files may compile a stand-in at the same time, because
 * each test file renames its complete library into place.
 */
function compiled(kind: keyof typeof SOURCES, undefinedSymbol: string): string {
  const hash = createHash("sha256").update(readFileSync(SOURCES[kind])).update(readFileSync(COMMON));
  const library = join(BUILT, `lib${kind}-${hash.digest("hex").slice(0, 16)}${undefinedSymbol}.so`);
  if (existsSync(library)) return library;
  mkdirSync(BUILT, { recursive: true });
  const without = undefinedSymbol === "" ? [] : [`-D${undefinedSymbol}=${undefinedSymbol}_newer`];
  const fresh = `${library}.${randomUUID()}`;
  const paths = [`-DCACHE="${BUILT}"`, `-DGCC="${execaSync("which", ["gcc"]).stdout}"`];
  execaSync("gcc", ["-shared", "-fPIC", "-O2", ...without, ...paths, "-o", fresh, SOURCES[kind]]);
  renameSync(fresh, library);
  return library;
}

/** A folder that stands for a host with systemd and GPUs. The driver of the simulated GPUs is a real shared library, compiled from C. */
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
    copyFileSync(compiled("cuda", undefinedSymbol), this.path(join(LIBRARY_FOLDER, name)));
  }

  /** Installs the stand-in for AMD's libraries. If given, the library lacks the symbol `undefinedSymbol`, as the library of an old driver does. */
  installHip(name: "libamdhip64.so.6" | "libhiprtc.so.6", undefinedSymbol = ""): void {
    mkdirSync(this.path(ROCM_FOLDER), { recursive: true });
    copyFileSync(compiled("hip", undefinedSymbol), this.path(join(ROCM_FOLDER, name)));
  }

  /**
   * Installs the stand-in for the C library, and the device file of an AMD GPU. The device file of the simulated GPU is `/dev/null`, because a test
   * without root cannot make another device. The stand-in for the C library answers all requests itself.
   */
  installDrm(pciAddress: string): void {
    copyFileSync(compiled("drm", ""), this.path(join(LIBRARY_FOLDER, "libc.so.6")));
    const device = `sys/bus/pci/devices/${pciAddress}`;
    this.write(`${device}/drm/renderD128/dev`, "1:3\n");
    this.write(`${device}/mem_info_gtt_used`, "0\n");
    this.write(`${device}/mem_info_vis_vram_total`, `${16 * 2 ** 20}\n`);
    mkdirSync(this.path("dev/dri"), { recursive: true });
    symlinkSync("/dev/null", this.path("dev/dri/renderD128"));
  }

  /** Writes the kernel's files about one AMD GPU. The argument `properties` replaces lines of the file `properties` of amdkfd. */
  amdGpu(number: number, pciAddress: string, properties: Readonly<Record<string, string | number>> = {}): void {
    const [bus = "", place = ""] = pciAddress.slice(5).split(":");
    const [device = "", part = ""] = place.split(".");
    const id = amdGpuUuid(number).slice(4);
    const location = (Number.parseInt(bus, 16) << 8) | (Number.parseInt(device, 16) << 3) | Number(part);
    const lines = {
      simd_count: 1216,
      gfx_target_version: 90_402,
      vendor_id: 4098,
      location_id: location,
      domain: Number.parseInt(pciAddress.slice(0, 4), 16),
      unique_id: BigInt(`0x${id}`).toString(),
      ...properties,
    };
    const text = Object.entries(lines).map(([name, value]) => `${name} ${value}\n`);
    this.write(`sys/class/kfd/kfd/topology/nodes/${number + 1}/properties`, text.join(""));
    for (const [name, value] of [
      ["unique_id", id],
      ["mem_info_vram_total", String(16 * 2 ** 20)],
      ["mem_info_vram_used", "0"],
    ] as const)
      this.write(`sys/bus/pci/devices/${pciAddress}/${name}`, `${value}\n`);
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

  heldBytes(): number {
    return readdirSync(this.path("gpu"))
      .flatMap((name) => /^held-(\d+)$/.exec(name)?.[1] ?? [])
      .filter((pid) => this.isAlive(Number(pid)))
      .reduce((sum, pid) => sum + Number(this.read(`gpu/held-${pid}`)), 0);
  }
}
