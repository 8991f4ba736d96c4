import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, openSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { execa } from "execa";
import { until } from "../support/until.ts";
import type { HostFile } from "./container-host.ts";
import type { BootImage } from "./image/boot-image.ts";
import { shellIn } from "./vm-shell.ts";

export const GUEST_GATEWAY = "10.0.2.2";
const DATA_DISK_BYTES = 2 ** 30;
const MIB = 2 ** 20;
/** The system disk of a virtual machine has two partitions, as an installer makes them: a boot partition and a root partition. */
const BOOT_PARTITION = { start: MIB, size: 31 * MIB };
const ROOT_START = 32 * MIB;
const ROOT_PARTUUID = "6d757374-6572-4000-8000-000000000002";
/** In /etc/fstab, a partition UUID names the root file system, because device names may change from boot to boot. */
export const ROOT_MOUNT = `PARTUUID=${ROOT_PARTUUID} / ext4 defaults,noatime 0 0\n`;

/** Returns the accelerator with which QEMU runs virtual machines. On some computers, a virtual machine with a stock kernel hangs with /dev/kvm. */
function accelerator(): "kvm" | "tcg" {
  const cpu = readFileSync("/proc/cpuinfo", "utf8");
  return /\b(vmx|svm)\b/.test(cpu) && existsSync("/dev/kvm") && !existsSync("/sys/module/kvm_pvm") ? "kvm" : "tcg";
}

export class VmHost {
  readonly #folder: string;
  readonly #image: BootImage;
  readonly name: string;
  readonly mac: string;
  /** The serial numbers of the virtual machine's data disks, whose content survives the installation of a new system. */
  dataDisks: readonly string[] = ["data1", "data2"];
  #process: ChildProcess | null = null;
  /** The time when the virtual machine was last switched on. */
  startedAt = new Date(0);
  #ended: Promise<void> = Promise.resolve();

  constructor(folder: string, image: BootImage, name: string, mac: string) {
    mkdirSync(folder, { recursive: true });
    this.#folder = folder;
    this.#image = image;
    this.name = name;
    this.mac = mac;
  }

  #file = (what: string): string => join(this.#folder, what);
  diskFile = (serial: string): string => this.#file(`disk-${serial}.raw`);

  /**
   * Installs a new operating system on the virtual machine's first disk, and creates missing data disks. `install` writes the files into the root
   * file system without mounting it.
   */
  async install(files: readonly HostFile[]): Promise<void> {
    const root = await this.#partitionedRoot();
    const commands: string[] = [];
    const fstab = { path: "etc/fstab", mode: 0o644, content: ROOT_MOUNT };
    for (const [at, file] of [fstab, ...files].entries()) {
      const local = this.#file(`file${at}`);
      writeFileSync(local, file.content, { mode: 0o600 });
      const folders = file.path.split("/").slice(0, -1);
      for (let depth = 1; depth <= folders.length; depth += 1)
        commands.push(`mkdir /${folders.slice(0, depth).join("/")}`);
      const name = basename(file.path);
      const mode = `0100${file.mode.toString(8)}`;
      commands.push(`cd /${folders.join("/")}`, `rm ${name}`, `write ${local} ${name}`, `sif ${name} mode ${mode}`);
    }
    const script = this.#file("debugfs");
    writeFileSync(script, `${commands.join("\n")}\n`);
    await execa("debugfs", ["-w", "-f", script, `${root}?offset=${ROOT_START}`]);
    for (const serial of this.dataDisks)
      await execa("truncate", ["-s", String(DATA_DISK_BYTES), this.diskFile(serial)]);
  }

  async #partitionedRoot(): Promise<string> {
    const root = this.diskFile("root");
    const { size } = statSync(this.#image.disk);
    await execa("truncate", ["-s", "0", root]);
    await execa("truncate", ["-s", String(ROOT_START + size + MIB), root]);
    const table = [
      "label: gpt",
      `start=${BOOT_PARTITION.start / 512}, size=${BOOT_PARTITION.size / 512}, name=boot`,
      `start=${ROOT_START / 512}, size=${size / 512}, name=root, uuid=${ROOT_PARTUUID}`,
    ];
    await execa("sfdisk", ["-q", root], { input: `${table.join("\n")}\n` });
    const copy = ["bs=1M", `seek=${ROOT_START / MIB}`, "conv=notrunc,sparse", "status=none"];
    await execa("dd", [`if=${this.#image.disk}`, `of=${root}`, ...copy]);
    const at = `offset=${BOOT_PARTITION.start}`;
    await execa("mkfs.ext4", ["-q", "-L", "boot", "-E", at, root, `${BOOT_PARTITION.size / MIB}M`]);
    return root;
  }

  /**
   * Copies the virtual machine's system disk, and returns a second virtual machine that has this copy. A test can later boot the present system of
   * the first virtual machine from the copy of its disk.
   */
  async keepSystem(): Promise<VmHost> {
    const kept = new VmHost(this.#file("kept"), this.#image, this.name, this.mac);
    kept.dataDisks = [];
    await execa("cp", ["--sparse=always", this.diskFile("root"), kept.diskFile("root")]);
    return kept;
  }

  start({ clockOffSeconds = 0 }: { clockOffSeconds?: number } = {}): void {
    const log = openSync(this.#file("qemu.log"), "a");
    const base = new Date(Date.now() + clockOffSeconds * 1000).toISOString().slice(0, 19);
    const drive = (id: string, file: string): string[][] => [
      ["-drive", `file=${file},format=raw,if=none,id=${id},cache=writeback`],
      ["-device", `nvme,serial=${id},drive=${id}`],
    ];
    const words = [
      ["-machine", "q35", "-accel", accelerator() === "kvm" ? "kvm" : "tcg,thread=multi,tb-size=512"],
      ["-cpu", accelerator() === "kvm" ? "host" : "Nehalem", "-m", "1024", "-smp", "2"],
      ["-nographic", "-nodefaults", "-no-user-config", "-no-reboot"],
      ["-serial", `file:${this.#file("console.log")}`],
      // The boot suite's root shell is on a serial port, so the virtual machine needs no network service.
      ["-chardev", `socket,id=shell,path=${this.#file("shell.sock")},server=on,wait=off`, "-serial", "chardev:shell"],
      ["-kernel", this.#image.kernel, "-append"],
      [`root=PARTUUID=${ROOT_PARTUUID} rw console=ttyS0 quiet mitigations=off systemd.show_status=0`],
      ...["root", ...this.dataDisks].flatMap((serial) => drive(serial, this.diskFile(serial))),
      ["-netdev", "user,id=net", "-device", `virtio-net-pci,netdev=net,romfile=,mac=${this.mac}`],
      ["-device", "virtio-rng-pci", "-rtc", `base=${base},clock=vm`],
    ].flat();
    const child = spawn("qemu-system-x86_64", words, {
      stdio: ["ignore", log, log],
    });
    this.#process = child;
    this.startedAt = new Date();
    this.#ended = new Promise((resolve) => child.once("close", () => resolve()));
  }

  get isRunning(): boolean {
    return this.#process !== null && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Ends the virtual machine at once, which loses data that the guest system has not written to disk. */
  async powerCut(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#ended;
  }

  /** Returns the output of a shell command in the virtual machine. Throws when the command fails or the shell does not answer. */
  shell = (line: string, timeoutMs?: number): Promise<string> => shellIn(this.#file("shell.sock"), line, timeoutMs);
  async devices(): Promise<ReadonlyMap<string, string>> {
    const lines = (await this.shell("lsblk -dnro SERIAL,NAME")).split("\n").map((line) => line.split(" "));
    return new Map(lines.map(([serial = "", name = ""]) => [serial, `/dev/${name}`]));
  }

  /** `answers` repeats its question to the guest's shell, because a question before the start of the shell is lost. */
  answers = (): Promise<true> =>
    until(`a shell on ${this.name}`, async () => (await this.shell("echo up", 5_000)) === "up" || undefined, {
      timeoutMs: 300_000,
      everyMs: 500,
    });
  console(): string {
    const file = this.#file("console.log");
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  }
}
