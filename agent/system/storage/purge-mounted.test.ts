import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DiskHost, mayLoop } from "../../../test/fakes/disks/disk-host.ts";
import { newTaskId } from "../../../test/fakes/hub/orders.ts";
import { inMountNamespace, mayMountLoop } from "../../../test/support/mount-namespace.ts";
import { PurgeEnd } from "./works.ts";

const UUID = "6d757374-6572-4000-8000-000000000042";
const SETUP = join(import.meta.dirname, "../../../test/fakes/disks/mounted-host.sh");
const PROGRAM = join(import.meta.dirname, "../../../test/support/purge-process.ts");
const FSTAB = `UUID=${UUID} /scratch ext4 defaults,noatime,nofail 0 2`;

let host: DiskHost;
beforeEach(() => {
  host = new DiskHost();
});
afterEach(() => host.remove());

/** Runs a script of calls on a test's host with a mounted data disk. */
function onHost(script: string): { ends: PurgeEnd[]; told: string[]; all: string } {
  const values = { disk: host.name, uuid: UUID, fstab: FSTAB, node: process.execPath, program: PROGRAM };
  const settings = Object.entries(values).map(([name, value]) => `${name}='${value}'`);
  const whole = `set -- "$0"; ${settings.join("; ")}; . "${SETUP}"; ${script}
[ ! -e worker-log ] || sed "s/^/log /" worker-log`;
  const all = inMountNamespace(whole, host.root).trim();
  const lines = all.split("\n");
  return {
    ends: lines.filter((line) => line.startsWith("{")).map((line) => PurgeEnd.parse(JSON.parse(line))),
    told: lines.filter((line) => line.startsWith("told ")).map((line) => line.slice(5)),
    // The lines of all workers say why an expectation fails.
    all,
  };
}
const NEW = `scratch ${UUID} 1234:4321:1771 secret=no mounted=ext4 rw,noatime files=lost+found,`;
const OLD = `scratch ${UUID} 1234:4321:1771 secret=yes mounted=ext4 rw,noatime files=file,lost+found,`;
const [A, B] = [newTaskId(), newTaskId()];
const reasonsOf = ({ outcome, evidence, file_systems = [] }: PurgeEnd): unknown[] => [
  outcome,
  evidence["reason"],
  ...file_systems.map((one) => one.evidence["reason"] ?? one.outcome),
];

describe.skipIf(!mayLoop || !mayMountLoop)("the purge of a mounted disk (SKIPPED without loop devices)", () => {
  it("continues after the worker was killed in each state, by the same task and by the next one", () => {
    const kills: [string, string, string][] = [
      ["unmounting", "touch state/kill-before-umount", A],
      ["unmounted", "touch state/kill-after-umount", B],
      ["marking", 'at id-ctrl-3 "$kill_worker"', A],
      ["ended", 'at get-log-4 "touch /state/kill-before-blkid"', A],
      ["making", "touch state/kill-after-mkfs.ext4", A],
      ["making", "touch state/kill-before-mkfs.ext4", B],
      ["mounting", "touch state/kill-after-mount", A],
      ["mounting", "touch state/kill-after-mount", B],
    ];
    const { ends, told, all } = onHost(
      kills
        .map(([state, kill, next]) => `begin; ${kill}; worker ${A}; echo "${state}"; worker ${next}; told`)
        .join("\n"),
    );
    expect(ends.map(reasonsOf), all).toEqual(kills.map(() => ["ok", undefined, "ok"]));
    expect(told, all).toEqual(kills.map(() => NEW));
  });

  it.skipIf(spawnSync("sh", ["-c", "command -v mkfs.xfs"]).status !== 0)(
    "makes XFS again (SKIPPED without mkfs.xfs)",
    () => {
      host.remove();
      host = new DiskHost("nvme", 320 * 1024 * 1024);
      host.drive({ erases: "discard" });
      const { ends, told, all } = onHost(
        `make='mkfs.xfs -q -f -L scratch -m'; uuid="uuid=$uuid"; fstab="LABEL=scratch /scratch auto nofail"; ln -s ../../nvme0n1 dev/disk/by-label/scratch; begin; worker ${A}; told`,
      );
      expect(ends.map(reasonsOf), all).toEqual([["ok", undefined, "ok"]]);
      expect(told, all).toEqual([`scratch ${UUID} 1234:4321:1771 secret=no mounted=xfs rw,relatime files=`]);
    },
  );

  it("changes nothing if something else uses the disk, or if nothing would mount it again", () => {
    const cases: [string, string, string][] = [
      ["mounted", "mkdir -p other; mount --bind scratch other", ""],
      ["mounted", "true", "/share1"],
      ["layout_unsupported", "mkdir scratch/in; mount -t tmpfs none scratch/in", ""],
      ["in_use", "(cd scratch && exec sleep 600) & sleeper=$!; sleep 0.3", ""],
      ["boot_needs_mount", "sed -i s/,nofail// etc/fstab", ""],
      ["mount_not_listed", ": >etc/fstab", ""],
      ["mount_not_listed", "sed -i s/UUID=./UUID=f/ etc/fstab", ""],
      ["sanitize_running", "echo 2 >state/status; echo 1000 >state/looks", ""],
      // The test's refusals come after the unmount of the disk, so the worker process mounts the file system again.
      ["in_use", "unshare -m sleep 600 & sleeper=$!; sleep 0.3", ""],
      ["other_disk", 'at id-ctrl-2 "printf S-3 | dd of=identify bs=1 seek=4 conv=notrunc status=none"', ""],
    ];
    const { ends, told, all } = onHost(
      cases
        .map(
          ([, script, path]) =>
            `begin; sleeper=; ${script}; worker ${A} ${path || "/scratch"}; [ -z "$sleeper" ] || kill -9 $sleeper
             umount scratch/in 2>/dev/null && rmdir scratch/in; told; [ "$(grep -c "^nvme sanitize" calls)" = 0 ]; echo 1 >state/looks`,
        )
        .join("\n"),
    );
    expect(ends.map(reasonsOf), all).toEqual(cases.map(([reason]) => ["failed", reason]));
    expect(told, all).toEqual(cases.map(() => OLD));
  });

  it("refuses the disk while another device has the UUID or the label by which fstab names it", () => {
    host.addDisk("sdt", "S-9");
    const byLabel = `sed -i s/^UUID=[^\\ ]*/LABEL=scratch/ etc/fstab; ln -sf ../../nvme0n1 dev/disk/by-label/scratch`;
    const make = (options: string) => `mkfs.ext4 -q -F ${options} dev/sdt >&2`;
    const cases: [unknown[], string, string][] = [
      [["failed", "twin_file_system"], make(`-U ${UUID}`), OLD],
      [["failed", "twin_file_system"], `${byLabel}; ${make("-L scratch")}`, OLD],
      // The worker process of an earlier task was lost after the unmount, and somebody added the other disk to the host afterwards.
      [
        ["failed", "twin_file_system", "not_mounted"],
        `${make("-L other")}; touch state/kill-after-umount; worker ${A}; ${make(`-U ${UUID}`)}; second=${B}`,
        OLD.replace("1234:4321:1771", "0:0:755").replace("ext4 rw,noatime", "").replace("file,lost+found,", ""),
      ],
      // If /etc/fstab names the file system by its UUID, no mount looks for its label.
      [["ok", undefined, "ok"], make("-L scratch"), NEW],
    ];
    const { ends, told, all } = onHost(
      cases.map(([, script]) => `begin; second=${A}; ${script}; worker "$second"; told`).join("\n"),
    );
    expect(ends.map(reasonsOf), all).toEqual(cases.map(([reasons]) => reasons));
    expect(told, all).toEqual(cases.map(([, , state]) => state));
    expect(ends[0]?.message).toContain("Give sdt another UUID (tune2fs -U random /dev/sdt)");
  });

  it("mounts at no other place if a symbolic link comes into the path, and writes to no other disk", () => {
    host.addDisk("sdt", "S-9");
    const link = "mv /scratch /real; ln -s /victim /scratch";
    const cases: [unknown[], string][] = [
      [["ok", undefined, "path_differs"], `instead mount '${link}; exec "$real" "$@"'`],
      [["ok", undefined, "path_differs"], `instead umount '"$real" "$@"; ${link}'`],
      // Just before `mkfs`, Linux gives the name of the disk to another disk.
      [["ok", undefined, "mount_failed"], `instead mkfs.ext4 'cp -a /dev/sdt /dev/nvme0n1; exec "$real" "$@"'`],
    ];
    const look = `echo "told $(grep -c -e /victim -e /real -e /scratch /proc/self/mountinfo) $(tr -d '\\0' <dev/sdt | wc -c)"`;
    const { ends, told, all } = onHost(
      `mkdir victim; ${cases.map(([, script]) => `begin; ${script}; worker ${A}; ${look}`).join("\n")}`,
    );
    expect(ends.map(reasonsOf), all).toEqual(cases.map(([reasons]) => reasons));
    expect(told, all).toEqual(cases.map(() => "0 0"));
  });

  it("continues a disk with two partitions after a kill between two unmounts or two mounts", () => {
    host.remove();
    host = new DiskHost("nvme", 8 * 1024 * 1024);
    host.drive({ erases: "discard" });
    host.addPartition(1, 2048, 4096);
    host.addPartition(2, 6144, 4096);
    const places = "/scratch /share1";
    const kills: [string, string][] = [
      ["kill-after-umount", A],
      ["kill-after-umount", B],
      ["kill-after-mount", B],
    ];
    const { ends, told, all } = onHost(
      kills
        .map(
          ([kill, next]) =>
            `begin_parts; touch state/${kill}; worker ${A} "${places}"; worker ${next} "${places}"; told_parts`,
        )
        .join("\n"),
    );
    expect(ends.map(reasonsOf), all).toEqual(kills.map(() => ["ok", undefined, "ok", "ok"]));
    expect(told, all).toEqual(
      kills.map(() => "secret=0 scratch=yes 1234:4321:1771 lost+found, share1=yes 1234:4321:1771 lost+found,"),
    );
  });

  it("says that the disk of an earlier task is not mounted, and a last worker mounts it again", () => {
    const cases: [unknown[], string][] = [
      [
        ["failed", "sanitize_running", "not_mounted"],
        `echo 2 >state/status; echo 1000 >state/looks; worker ${B}; echo 1 >state/looks`,
      ],
      [["failed", undefined], `restore_only=yes worker ${A}`],
      [
        ["failed", "journal_unreadable"],
        `for file in var/lib/muster/agent/layout/*; do echo >"$file"; done; worker ${B}`,
      ],
      [
        ["ok", undefined, "mount_differs"],
        `printf '#!/bin/sh\\nexec /host/usr/bin/mount -t tmpfs none /scratch\\n' >state/instead-of-mount; chmod 755 state/instead-of-mount; worker ${A}`,
      ],
    ];
    const { ends, told, all } = onHost(
      cases.map(([, script]) => `begin; touch state/kill-after-umount; worker ${A}; ${script}; told`).join("\n"),
    );
    expect(ends.map(reasonsOf), all).toEqual(cases.map(([reasons]) => reasons));
    expect(told[1]).toBe(OLD);
    // If a mount took another device, the agent unmounts that device.
    expect(told[3]).toContain(" mounted= ");
  });

  it("says what is missing after a failure, and how to repair it", () => {
    const failing = (tool: string) =>
      `printf '#!/bin/sh\\nexit 9\\n' >state/instead-of-${tool}; chmod 755 state/instead-of-${tool}`;
    const cases: [unknown[], string][] = [
      [["ok", undefined, "mkfs_failed"], failing("mkfs.ext4")],
      [["ok", undefined, "mount_failed"], failing("mount")],
      [["failed", "sanitize_failed", "file_system_missing"], "echo true >state/fails"],
      [
        ["ok", undefined, "not_blank"],
        `at get-log-4 "touch /state/kill-before-blkid"; worker ${A}; mkfs.ext4 -q -F dev/nvme0n1`,
      ],
    ];
    const { ends, told, all } = onHost(
      `${cases.map(([, script]) => `begin; ${script}; worker ${A} | tee end; rm -f state/instead-*; chroot . sh -c "$(sed 's/.*or repair it: //; s/","evidence.*//' end | tail -n 1)"; told`).join("\n")}`,
    );
    expect(ends.map(reasonsOf), all).toEqual(cases.map(([reasons]) => reasons));
    expect(told, all).toEqual(cases.map(() => expect.stringContaining(`scratch ${UUID} 1234:4321:1771`)));
    expect(ends[0]?.file_systems?.[0]).toMatchObject({
      message: `The disk S-1 (nvme0n1) has no file system for /scratch: mkfs.ext4 ended with status 9: . Clean the storage again, or repair it: mkfs.ext4 -q -L scratch -U ${UUID} /dev/nvme0n1 && mount /scratch && chown 1234:4321 /scratch && chmod 1771 /scratch`,
    });
  });
});
