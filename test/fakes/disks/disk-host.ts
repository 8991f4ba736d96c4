import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { istdout } from "../../../agent/storage/ata-identify.fixture.ts";
import { controllerBytes, identifyBytes, namespaceBytes } from "../../../agent/storage/nvme-identify.fixture.ts";
import { HostFolder } from "../hub/host-folder.ts";

const TOOL = join(import.meta.dirname, "disk-tool.sh");
const BYTES = 4 * 1024 * 1024;
const SECRET = "TENANT-SECRET";
/** The content of simulated disks is in memory where possible, because the computer's own disk is slow. */
const IMAGES = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

export interface DriveState {
  readonly serial: string;
  readonly oacs: number;
  readonly sanicap: number;
  readonly fna: number;
  readonly namespaces: number;
  /** The field CMIC of an NVMe disk, by which the disk says that it has several controllers, and the controllers' numbers. */
  readonly cmic: number;
  readonly controllers: readonly number[];
  /** The number of bytes of the simulated disk that belong to no namespace. */
  readonly unallocated: number;
  /** The word 59 in a SATA disk's answer to IDENTIFY DEVICE, which names the sanitize commands that the disk knows. */
  readonly word59: number;
  /**
   * The word 128 in a SATA disk's answer to IDENTIFY DEVICE, which describes the disk's security feature set. Its bit 1 says that a password is set,
   * and bit 2 that the password locks the disk.
   */
  readonly word128: number;
  /** The word 89 of IDENTIFY DEVICE: how long the disk expects a security erase to take. */
  readonly word89: number;
  /** The state of the disk's sanitize operation as in the NVMe log: 0 never, 1 done, 2 running, 3 failed. */
  readonly status: number;
  readonly action: number;
  /** How often a program must read the status of a sanitize operation until the operation ends. */
  readonly looks: number;
  readonly fails: boolean;
  readonly erases: "zeros" | "random" | "nothing" | "discard";
  /**
   * How the simulated disk treats a command. With `other`, the disk does another command than the tool sent. With `late`, the disk begins the command
   * although it reports an error. With `lost`, the disk begins the command while the tool ends with an error of the kernel. With `mute`, the disk
   * does not answer questions about its status while the command runs.
   */
  readonly accepts: "accepted" | "refused" | "other" | "late" | "lost" | "mute";
  /** Whether the tool exits with status 0 although the disk refused the tool's command. */
  readonly exitsWell: boolean;
}
const NEW: DriveState = {
  serial: "S-1",
  oacs: 2,
  sanicap: 3,
  fna: 0,
  namespaces: 1,
  cmic: 0,
  controllers: [7],
  unallocated: 0,
  word59: 0x9000,
  word128: 0x21,
  word89: 0,
  status: 0,
  action: 0,
  looks: 1,
  fails: false,
  erases: "zeros",
  accepts: "accepted",
  exitsWell: false,
};

/** True if this process may attach loop devices and make device files. A container may forbid loop devices and device files. */
export const mayLoop: boolean =
  process.getuid?.() === 0 &&
  spawnSync(
    "sh",
    ["-ec", "cd $(mktemp -d); truncate -s 1M i; d=$(losetup -f --show i); losetup -d $d; mknod n b 7 0; rm -r $PWD"],
    {
      stdio: "ignore",
    },
  ).status === 0;

/**
 * A folder that stands for a host with one data disk. The content of the simulated disk is a loop device, so Linux claims and reads the disk as every
 * block device. On the simulated host, shell scripts stand for the tools nvme-cli and hdparm.
 */
export class DiskHost extends HostFolder {
  readonly loop: string;
  readonly name: string;
  readonly number: string;
  readonly #images = mkdtempSync(join(IMAGES, "muster-disk-"));
  readonly #others: string[] = [];
  readonly #parts: number[] = [];
  #state = NEW;
  readonly #bytes: number;
  constructor(kind: "nvme" | "ata" = "nvme", bytes: number = BYTES) {
    super();
    this.#bytes = bytes;
    this.name = kind === "nvme" ? "nvme0n1" : "sda";
    const { loop, number } = this.#attach(this.name, bytes);
    this.loop = loop;
    this.number = number;
    if (kind === "nvme") this.#nvme();
    else this.#ata();
    this.write("proc/self/mountinfo", "21 1 8:1 / / rw - ext4 /dev/sdz1 rw\n");
    for (const tool of ["nvme", "hdparm"])
      this.write(`usr/bin/${tool}`, `#!/bin/sh\nexec ${TOOL} ${tool} "$@"\n`, 0o755);
    this.drive({});
    this.fill(SECRET);
  }

  #block(path: string, files: Record<string, string>): void {
    const all = { dev: this.number, ro: "0", removable: "0", size: String(this.#bytes / 512), ...files };
    for (const [file, text] of Object.entries(all)) this.write(`sys/devices/${path}/${file}`, `${text}\n`);
    mkdirSync(this.path("sys/class/block"), { recursive: true });
    symlinkSync(this.path(`sys/devices/${path}`), this.path(`sys/class/block/${this.name}`));
  }
  #nvme(): void {
    const controller = {
      serial: "S-1",
      subsysnqn: "nqn.x",
      transport: "pcie",
      model: "FAST SSD",
      cntlid: "7",
      firmware_rev: "F1",
    };
    for (const [file, text] of Object.entries(controller)) this.write(`sys/class/nvme/nvme0/${file}`, `${text}\n`);
    this.#block("pci0/nvme/nvme0/nvme0n1", { nsid: "1", wwid: "eui.1" });
    symlinkSync(this.path("sys/class/nvme/nvme0"), this.path("sys/devices/pci0/nvme/nvme0/nvme0n1/device"));
  }
  #ata(): void {
    this.#block("pci0/ata1/block/sda", {});
    const device = { vendor: "ATA", model: "SLOW SSD", rev: "F1", wwid: "naa.1", vpd_pg80: "\0\0\0\x03S-1" };
    for (const [file, text] of Object.entries(device)) this.write(`sys/devices/pci0/ata1/device/${file}`, text);
    symlinkSync(this.path("sys/devices/pci0/ata1/device"), this.path("sys/devices/pci0/ata1/block/sda/device"));
  }

  /** Adds a second disk with its own loop device, whose content is zeros. */
  addDisk(name: string, serial: string): void {
    const { loop, number } = this.#attach(name, BYTES);
    this.#others.push(loop);
    const files = { dev: number, ro: "0", removable: "0", size: String(BYTES / 512), serial };
    for (const [file, text] of Object.entries(files)) this.write(`sys/devices/pci0/${name}/${file}`, `${text}\n`);
    symlinkSync(this.path(`sys/devices/pci0/${name}`), this.path(`sys/class/block/${name}`));
  }
  /** Adds a partition of the disk, which the kernel also has as a block device. A test writes the table of the partitions itself. */
  addPartition(part: number, start: number, sectors: number): void {
    const name = `${this.name}p${part}`;
    execFileSync("addpart", [this.loop, String(part), String(start), String(sectors)]);
    this.#parts.push(part);
    const number = readFileSync(`/sys/class/block/${basename(this.loop)}p${part}/dev`, "utf8").trim();
    execFileSync("mknod", [this.path(`dev/${name}`), "b", ...number.split(":")]);
    const files = { dev: number, ro: "0", removable: "0", size: String(sectors), partition: String(part) };
    const folder = `sys/devices/pci0/nvme/nvme0/${this.name}/${name}`;
    for (const [file, text] of Object.entries(files)) this.write(`${folder}/${file}`, `${text}\n`);
    symlinkSync(this.path(folder), this.path(`sys/class/block/${name}`));
  }
  /** Attaches a loop device, and makes a device file of the host for it. */
  #attach(name: string, bytes: number): { readonly loop: string; readonly number: string } {
    const image = join(this.#images, name);
    writeFileSync(image, "");
    truncateSync(image, bytes);
    const loop = execFileSync("losetup", ["-f", "--show", image], { encoding: "utf8" }).trim();
    const number = readFileSync(`/sys/class/block/${basename(loop)}/dev`, "utf8").trim();
    mkdirSync(this.path("dev"), { recursive: true });
    execFileSync("mknod", [this.path(`dev/${name}`), "b", ...number.split(":")]);
    return { loop, number };
  }

  drive(more: Partial<DriveState>): void {
    this.#state = { ...this.#state, ...more };
    const changed = this.has("state/status") ? more : this.#state;
    for (const [fact, value] of Object.entries(changed)) this.write(`state/${fact}`, `${value}\n`);
    this.write("state/device", `${this.loop}\n`);
    const told = { ...this.#state, model: "FAST SSD", firmware: "F1" };
    writeFileSync(this.path("state/identify"), identifyBytes(told));
    writeFileSync(this.path("state/id-ns"), namespaceBytes(0x11, 0x0a));
    writeFileSync(this.path("state/controller-list"), controllerBytes(this.#state.controllers));
    // The simulated hdparm chooses the answer whose word 128 has the bits of the present password.
    for (const bits of [0, 2, 6])
      this.write(`state/istdout-${bits}`, istdout({ ...told, word128: told.word128 | bits }));
    if (!this.has("state/password")) this.write("state/password", "0\n");
  }
  /** Runs a shell script at one call of the disk's tool, for example at the second call of `id-ctrl`. */
  at(call: string, script: string): void {
    this.write(`state/at-${call}`, `#!/bin/sh\nset -e\n${script}\n`, 0o755);
  }
  content(): Buffer {
    return readFileSync(this.loop);
  }
  fill(text: string): void {
    writeFileSync(this.loop, Buffer.alloc(BYTES, `${text} `), { flag: "r+" });
  }
  /** True if the tenant's text is still on the simulated disk. */
  hasSecret(): boolean {
    return readFileSync(this.loop).includes(SECRET);
  }
  parts(folder: string): string[] {
    return readdirSync(this.path(folder));
  }
  /** Returns the calls of the host's tools that erase a disk. */
  commands(): string[] {
    return this.calls().filter((call) => /^nvme (sanitize|format)|know-what/.test(call));
  }
  override remove(): void {
    for (const part of this.#parts) spawnSync("delpart", [this.loop, String(part)]);
    for (const loop of [this.loop, ...this.#others]) spawnSync("losetup", ["-d", loop]);
    rmSync(this.#images, { recursive: true, force: true });
    super.remove();
  }
}
