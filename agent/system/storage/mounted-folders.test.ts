import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inMountNamespace, mayMount, mayMountLoop } from "../../../test/support/mount-namespace.ts";
import { isThin, reserveOf } from "./free-space.ts";
import { StepEnd } from "./works.ts";

const SUPPORT = join(import.meta.dirname, "../../../test/support");
const EMPTY = `"${process.execPath}" "${join(SUPPORT, "empty-folder-process.ts")}" "$0"`;
const FILL = `"${process.execPath}" "${join(SUPPORT, "fill-free-space-process.ts")}"`;
const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "muster-mounted-"));
  for (const name of ["scratch", "victim", "share1", "disk"]) mkdirSync(join(root, name));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const lastEnd = (printed: string): StepEnd => StepEnd.parse(JSON.parse(printed.trim().split("\n").at(-1) ?? ""));

describe("emptying a folder with mounts (SKIPPED where mounting is forbidden)", () => {
  it.skipIf(!mayMount)(
    "enters no mount: no file system in memory, no bind mount of the same device, no mounted file",
    () => {
      writeFileSync(join(root, "victim/file"), "");
      mkdirSync(join(root, "victim/inner"));
      const printed = inMountNamespace(
        `cd "$0"; mkdir -p scratch/memory scratch/deep/bind; touch scratch/mounted scratch/deep/plain
      mount -t tmpfs none scratch/memory; touch scratch/memory/file
      mount --bind victim scratch/deep/bind; mount --bind victim/file scratch/mounted
      ${EMPTY} /scratch scratch`,
        root,
      );
      expect(lastEnd(printed)).toMatchObject({ outcome: "failed", evidence: { files: 1, mounts: 3 } });
      expect(readdirSync(join(root, "victim")).sort()).toEqual(["file", "inner"]);
      expect(readdirSync(join(root, "scratch")).sort()).toEqual(["deep", "memory", "mounted"]);
      expect(readdirSync(join(root, "scratch/deep"))).toEqual(["bind"]);
    },
  );

  it.skipIf(!mayMount)("does not wait for a file system that never answers", () => {
    const printed = inMountNamespace(
      `cd "$0"; mkdir scratch/hang; touch scratch/file; exec 3<>/dev/fuse
      mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none scratch/hang
      ${EMPTY} /scratch scratch`,
      root,
    );
    expect(lastEnd(printed)).toMatchObject({ outcome: "failed", evidence: { files: 1, mounts: 1 } });
  });

  it.skipIf(!mayMount)("empties a data disk that is mounted", () => {
    const printed = inMountNamespace(
      `cd "$0"; mount -t tmpfs none share1; touch share1/file; ${EMPTY} /share1 share; ls -A share1 >&2`,
      root,
    );
    expect(lastEnd(printed)).toMatchObject({ outcome: "ok", evidence: { files: 1 } });
  });

  it.skipIf(!mayMount)("refuses a folder of the system that is mounted at a scratch path", () => {
    const printed = inMountNamespace(
      `cd "$0"; mkdir etc; touch etc/passwd; mount --bind etc scratch; ${EMPTY} /scratch scratch; ls etc/passwd >&2`,
      root,
    );
    expect(lastEnd(printed)).toMatchObject({ outcome: "failed", message: expect.stringContaining("/etc") });
    expect(readdirSync(join(root, "etc"))).toEqual(["passwd"]);
  });
});

describe("overwriting the free space of a file system (SKIPPED where mounting is forbidden)", () => {
  const DISK = `cd "$0"; truncate -s 64M image; mkfs.ext4 -q -m 0 image; mount -o loop image disk`;
  const SECRET = `yes TENANT-SECRET | head -c 8388608 > disk/file; sync; rm disk/file; sync`;

  it.skipIf(!mayMountLoop)("leaves nothing of a removed file on the disk, and no file of its own", () => {
    const printed = inMountNamespace(
      `${DISK}; ${SECRET}; grep -c TENANT-SECRET image >&2; ${FILL} "$0/disk" 0; ls -A disk > left; umount disk
      if grep -q TENANT-SECRET image; then echo found > found; fi`,
      root,
    );
    const end = lastEnd(printed);
    expect(end).toMatchObject({ outcome: "ok", evidence: { bytes_reserved: 0, method: "clear" } });
    expect(Number(end.evidence["bytes_written"])).toBeGreaterThan(40 * MIB);
    expect(readdirSync(root)).not.toContain("found");
  });

  it.skipIf(!mayMountLoop)("keeps the reserve free, and gives all space back if it is killed", () => {
    const printed = inMountNamespace(
      `${DISK}; free() { stat -f -c %a disk; }; before=$(free)
      ${FILL} "$0/disk" 16777216
      [ "$(free)" = "$before" ]
      mount -o remount,sync disk; ${FILL} "$0/disk" 1048576 > /dev/null & pid=$!
      while kill -0 $pid && [ "$(free)" = "$before" ]; do :; done
      kill -9 $pid; wait $pid || true
      [ "$(free)" = "$before" ]; [ "$(ls -A disk)" = lost+found ]; umount disk`,
      root,
    );
    const { evidence } = lastEnd(printed);
    const left = Number(evidence["bytes_free_before"]) - Number(evidence["bytes_written"]);
    expect([left >= 15 * MIB, left < 24 * MIB, evidence["bytes_reserved"]]).toEqual([true, true, 16 * MIB]);
  });

  it.skipIf(!mayMount)("skips a folder in memory", () => {
    expect(lastEnd(inMountNamespace(`mount -t tmpfs none "$0/disk"; ${FILL} "$0/disk" 0`, root))).toMatchObject({
      outcome: "skipped",
    });
  });
});

describe("the rules of overwriting free space", () => {
  it.each([
    [100 * GIB, true, 10 * GIB],
    [10 * GIB, true, 4 * GIB],
    [10 * GIB, false, GIB],
    [1000 * GIB, false, 20 * GIB],
  ])("of %d bytes, root file system: %s, %d stay free", (total, isRoot, reserve) => {
    expect(reserveOf(total, isRoot)).toBe(reserve);
  });

  it("find a thin pool at any depth below a device", () => {
    const device = (number: string, uuid: string, slaves: Record<string, string> = {}): void => {
      const folder = join(root, "sys/dev/block", number);
      mkdirSync(join(folder, "dm"), { recursive: true });
      writeFileSync(join(folder, "dm/uuid"), `${uuid}\n`);
      for (const [name, its] of Object.entries(slaves)) {
        mkdirSync(join(folder, "slaves", name), { recursive: true });
        writeFileSync(join(folder, "slaves", name, "dev"), `${its}\n`);
      }
    };
    device("253:0", "LVM-vg-root", { sda1: "8:1" });
    device("253:1", "LVM-vg-pool-tpool", { sda1: "8:1" });
    device("253:2", "LVM-vg-thin", { "dm-1": "253:1" });
    device("253:3", "CRYPT-LUKS2-x", { "dm-2": "253:2" });
    const thin = ["8:1", "253:0", "253:1", "253:2", "253:3"].filter((one) => isThin(one, join(root, "sys")));
    expect(thin).toEqual(["253:1", "253:2", "253:3"]);
  });
});
