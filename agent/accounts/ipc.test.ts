import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseMounts } from "../system/mounts.ts";
import { sysvIdsOf } from "./ipc.ts";

describe("tables of the kernel", () => {
  it.each([
    ["shm", "shmid"],
    ["sem", "semid"],
    ["msg", "msqid"],
  ])("of this machine have the columns of /proc/sysvipc/%s", (file, column) => {
    const table = readFileSync(`/proc/sysvipc/${file}`, "utf8");
    expect(sysvIdsOf(table, column, () => true)).toHaveLength(table.trimEnd().split("\n").length - 1);
    expect(sysvIdsOf(table, column, () => false)).toEqual([]);
  });

  it("count an object by its owner and by its creator", () => {
    const table = [
      "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime",
      "         0          7   600          3 20000     0     0     0          0          0",
      "         0          8   600          3     0     0 20000     0          0          0",
      "         0          9   600          3     0 20000     0 20000          0          0",
      "",
    ].join("\n");
    expect(sysvIdsOf(table, "semid", (uid) => uid === 20_000)).toEqual([7, 8]);
    expect(() => sysvIdsOf("a b\n1 2\n", "semid", () => true)).toThrow("no columns");
  });

  it("list mounts with the characters that the kernel writes as numbers", () => {
    const text =
      "36 35 98:0 /mnt /home/a\\040b\\012c\\134 rw,noatime master:1 shared:2 - ext3 /dev/root rw\n\nbroken\n";
    expect(parseMounts(text)).toEqual([
      {
        id: "36",
        parent: "35",
        device: "98:0",
        from: "/mnt",
        path: "/home/a b\nc\\",
        type: "ext3",
        source: "/dev/root",
        options: ["rw", "noatime", "rw"],
        isReadOnly: false,
      },
    ]);
    expect(parseMounts(readFileSync("/proc/self/mountinfo", "latin1")).map(({ path }) => path)).toContain("/");
  });
});
