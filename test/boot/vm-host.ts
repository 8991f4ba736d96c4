import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { execa } from "execa";
import type { HostFile } from "./container-host.ts";
import type { BootImage } from "./image/boot-image.ts";
import { shellIn } from "./vm-shell.ts";

/** Where a guest of QEMU's user network finds this machine's loopback. */
export const GUEST_GATEWAY = "10.0.2.2";
/** Guests have no network but that; what runs in them is asked through their serial port. */
const DATA_DISKS = 2;
const GIB = 2 ** 30;

/** Is there hardware virtualisation that a stock kernel can use? Some machines open /dev/kvm and then hang the guest. */
function accelerator(): "kvm" | "tcg" {
  const cpu = readFileSync("/proc/cpuinfo", "utf8");
  return /\b(vmx|svm)\b/.test(cpu) && existsSync("/dev/kvm") && !existsSync("/sys/module/kvm_pvm") ? "kvm" : "tcg";
}

/** A virtual machine with a kernel, disks and a clock of its own: a host as far as there can be one without hardware. */
export class VmHost {
  readonly #folder: string;
  readonly #image: BootImage;
  readonly name: string;
  readonly mac: string;
  #process: ChildProcess | null = null;
  /** When the machine was last switched on. */
  startedAt = new Date(0);
  #ended: Promise<void> = Promise.resolve();

  constructor(folder: string, image: BootImage, name: string, mac: string) {
    this.#folder = folder;
    this.#image = image;
    this.name = name;
    this.mac = mac;
  }

  #file = (what: string): string => join(this.#folder, `${this.name}-${what}`);

  /** A new operating system on the first disk, and blank data disks. The files are written into the file system without mounting it. */
  async install(files: readonly HostFile[]): Promise<void> {
    const root = this.#file("root.raw");
    await execa("cp", ["--sparse=always", this.#image.disk, root]);
    const commands: string[] = [];
    for (const [at, file] of files.entries()) {
      const local = this.#file(`file${at}`);
      writeFileSync(local, file.content, { mode: 0o600 });
      const folders = file.path.split("/").slice(0, -1);
      for (let depth = 1; depth <= folders.length; depth += 1)
        commands.push(`mkdir /${folders.slice(0, depth).join("/")}`);
      const name = basename(file.path);
      const mode = `0100${file.mode.toString(8)}`;
      commands.push(`cd /${folders.join("/")}`, `write ${local} ${name}`, `sif ${name} mode ${mode}`);
    }
    const script = this.#file("debugfs");
    writeFileSync(script, `${commands.join("\n")}\n`);
    await execa("debugfs", ["-w", "-f", script, root]);
    for (let disk = 1; disk <= DATA_DISKS; disk += 1)
      await execa("truncate", ["-s", String(2 * GIB), this.#file(`data${disk}.raw`)]);
  }

  /** `rtc`: seconds that the machine's clock is off. */
  start({ clockOffSeconds = 0 }: { clockOffSeconds?: number } = {}): void {
    const log = openSync(this.#file("qemu.log"), "a");
    const base = new Date(Date.now() + clockOffSeconds * 1000).toISOString().slice(0, 19);
    const drive = (id: string, file: string) => [
      ["-drive", `file=${file},format=raw,if=none,id=${id},cache=writeback`],
      ["-device", `nvme,serial=${id},drive=${id}`],
    ];
    const words = [
      ["-machine", "q35", "-accel", accelerator() === "kvm" ? "kvm" : "tcg,thread=multi,tb-size=512"],
      ["-cpu", accelerator() === "kvm" ? "host" : "Nehalem", "-m", "1024", "-smp", "2"],
      ["-nographic", "-nodefaults", "-no-user-config", "-no-reboot"],
      ["-serial", `file:${this.#file("console.log")}`],
      // A root shell, for the suite alone: no network service of the guest is needed to look into it.
      ["-chardev", `socket,id=shell,path=${this.#file("shell.sock")},server=on,wait=off`, "-serial", "chardev:shell"],
      ["-kernel", this.#image.kernel, "-append"],
      ["root=/dev/nvme0n1 rw console=ttyS0 quiet mitigations=off systemd.show_status=0"],
      ...drive("root", this.#file("root.raw")),
      ...Array.from({ length: DATA_DISKS }, (_, at) => drive(`data${at + 1}`, this.#file(`data${at + 1}.raw`))).flat(),
      ["-netdev", "user,id=net", "-device", `virtio-net-pci,netdev=net,romfile=,mac=${this.mac}`],
      ["-device", "virtio-rng-pci", "-rtc", `base=${base},clock=vm`],
    ].flat();
    const child = spawn("qemu-system-x86_64", words, { stdio: ["ignore", log, log] });
    this.#process = child;
    this.startedAt = new Date();
    this.#ended = new Promise((resolve) => child.once("close", () => resolve()));
  }

  get isRunning(): boolean {
    return this.#process !== null && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** As when the power goes: nothing is told, and what was not written to disk is lost. */
  async powerCut(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#ended;
  }

  /** What a shell line prints; throws when it fails or the guest does not answer in time. */
  shell = (line: string, timeoutMs?: number): Promise<string> => shellIn(this.#file("shell.sock"), line, timeoutMs);
  console(): string {
    const file = this.#file("console.log");
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  }
}
