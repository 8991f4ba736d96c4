import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import type { HostFile } from "./container-host.ts";
import type { VmHost } from "./vm-host.ts";

const MIB = 2 ** 20;
const DISK_MIB = 1024;
/** The content of a test file on disks that the first boot may not erase, where the file must stay unchanged. */
export const LEDGER = "what nobody may erase";
const UUID = (last: number): string => `6d757374-6572-4000-8000-0000000000${last}`;
const [MOUNTED, SWAP, PRIVATE, SIGNED] = [UUID(11), UUID(12), UUID(13), UUID(14)];
/** The partitions of the virtual machine's disk `private`, in MiB. */
const FIRST = { start: 1, size: 400 };
const SECOND = { start: 401, size: 400 };

/**
 * The guest uses the disks `mounted` and `swap` by fstab. The disk `private` is in use by a process in its own mount namespace. The second partition
 * of the disk `private` is unused. The disks `signed`, `table` and `luks` contain data but are not in use. The disk `blank` is empty.
 */
export async function layDisks(host: VmHost): Promise<void> {
  const serials = ["mounted", "swap", "private", "signed", "table", "luks", "blank"];
  host.dataDisks = serials;
  for (const serial of serials) await execa("truncate", ["-s", `${DISK_MIB}M`, host.diskFile(serial)]);
  const ledger = `${host.diskFile("mounted")}.content`;
  mkdirSync(ledger, { recursive: true });
  writeFileSync(join(ledger, "ledger"), LEDGER);
  const ext4 = (serial: string, uuid: string, { start, size } = { start: 0, size: DISK_MIB }) =>
    execa("mkfs.ext4", [
      ...["-q", "-L", "customer", "-U", uuid, "-d", ledger, "-E", `offset=${start * MIB}`],
      ...[host.diskFile(serial), `${size}M`],
    ]);
  const table = (serial: string, partitions: readonly { start: number; size: number }[]) =>
    execa("sfdisk", ["-q", host.diskFile(serial)], {
      input: ["label: gpt", ...partitions.map((one) => `start=${one.start}MiB, size=${one.size}MiB`), ""].join("\n"),
    });
  await ext4("mounted", MOUNTED);
  await execa("mkswap", ["-q", "-U", SWAP, host.diskFile("swap")]);
  await table("private", [FIRST, SECOND]);
  await ext4("private", PRIVATE, FIRST);
  await ext4("private", UUID(15), SECOND);
  await ext4("signed", SIGNED);
  await table("table", []);
  // The first bytes of a LUKS header, by which `blkid` recognises a disk as encrypted.
  await execa("dd", [`of=${host.diskFile("luks")}`, "conv=notrunc", "status=none"], {
    input: Buffer.from("LUKS\xba\xbe\0\x01", "latin1"),
  });
  rmSync(ledger, { recursive: true });
}

export const MOUNTS = `UUID=${MOUNTED} /data ext4 defaults,nofail 0 0\nUUID=${SWAP} none swap sw,nofail 0 0\n`;
/** A systemd service that mounts the disk `private` before the parts of the user data run, as a site's service could do. */
export const PRIVATE_MOUNT: readonly HostFile[] = [
  {
    path: "etc/systemd/system/private-data.service",
    mode: 0o644,
    content: `[Unit]
Before=cloud-final.service

[Service]
Type=notify
NotifyAccess=all
PrivateMounts=yes
ExecStart=/bin/sh -c 'mount UUID=${PRIVATE} /mnt && systemd-notify --ready && exec sleep infinity'
`,
  },
  {
    path: "etc/systemd/system/cloud-final.service.d/private-data.conf",
    mode: 0o644,
    content: "[Unit]\nWants=private-data.service\nAfter=private-data.service\n",
  },
];

/**
 * The ranges, in MiB, of disks in use that only a program which formats the disk would write. The kernel itself may write any part of a mounted file
 * system.
 */
const QUIET: Readonly<Record<string, readonly { start: number; size: number }[]>> = {
  private: [
    { start: 0, size: FIRST.start },
    { start: SECOND.start, size: DISK_MIB - SECOND.start },
  ],
};

/** Returns a hash of a disk, or of the disk's ranges in `QUIET`. */
export async function hashOf(host: VmHost, serial: string): Promise<string> {
  const ranges = QUIET[serial] ?? [{ start: 0, size: DISK_MIB }];
  const reads = ranges.map(({ start, size }) => `dd if="$1" bs=1M skip=${start} count=${size} status=none`);
  const { stdout } = await execa("bash", ["-c", `{ ${reads.join("; ")}; } | sha256sum`, "bash", host.diskFile(serial)]);
  return stdout;
}
