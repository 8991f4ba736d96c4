import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createLog } from "../../../agent/log.ts";
import { type System, systemAt } from "../../../agent/system/system.ts";

const BOOT_ID = "5f0c1a52-0000-4000-8000-000000000001";
/**
 * A shell command for stand-ins that start programs of Node.js. The agent gives its tools no variable of its own environment, and without the compile
 * cache of the tests each program takes a second longer.
 */
export const KEEP_COMPILE_CACHE = `export NODE_COMPILE_CACHE='${process.env["NODE_COMPILE_CACHE"] ?? ""}'`;
export const quietAgentLog = createLog(() => undefined);

/** A folder that stands for a host's root folder, with stand-ins for the host's tools in `usr/bin`. */
export class HostFolder {
  readonly root = mkdtempSync(join(tmpdir(), "muster-agent-"));
  readonly system: System = systemAt(this.root, quietAgentLog);

  constructor() {
    this.write("proc/sys/kernel/random/boot_id", `${BOOT_ID}\n`);
    this.write("etc/hostname", "gpu-01\n");
    this.write("sys/class/net/eth0/address", "AA:BB:CC:00:00:01\n");
    this.write("sys/class/net/lo/address", "00:00:00:00:00:00\n");
  }

  path(name: string): string {
    return join(this.root, name);
  }
  write(name: string, text: string, mode = 0o644): void {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    // `write` renames a complete new file over an old file, so that no reader sees an empty file.
    const next = `${this.path(name)}.next`;
    writeFileSync(next, text);
    chmodSync(next, mode);
    renameSync(next, this.path(name));
  }
  read(name: string): string {
    return readFileSync(this.path(name), "utf8");
  }
  has(name: string): boolean {
    return existsSync(this.path(name));
  }
  mode(name: string): string {
    return (statSync(this.path(name)).mode & 0o777).toString(8);
  }

  /**
   * Installs a shell script that stands for a tool of the simulated host. The installed shell script appends its name and arguments to the file
   * `calls`, and then runs the commands `script`.
   */
  tool(name: string, script = "exit 0"): void {
    this.write(`usr/bin/${name}`, `#!/bin/sh\necho "${name} $*" >> "$MUSTER_ROOT/calls"\n${script}\n`, 0o755);
  }
  calls(): string[] {
    return this.has("calls") ? this.read("calls").trimEnd().split("\n") : [];
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
