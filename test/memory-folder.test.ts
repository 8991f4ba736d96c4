import { tmpdir } from "node:os";
import { expect, it } from "vitest";
import { memoryFolder } from "./support/memory-folder.ts";

const ROOM = 8 * 2 ** 30;
const mount = (type: string, options: string): string =>
  `/dev/vda / ext4 rw 0 0\n${type} /dev/shm ${type} ${options} 0 0\ntmpfs /run tmpfs rw,noexec 0 0\n`;

it.each([
  ["keeps files in memory", mount("tmpfs", "rw,nosuid"), ROOM, ROOM, "/dev/shm"],
  ["may hold no programs", mount("tmpfs", "rw,noexec"), ROOM, ROOM, tmpdir()],
  ["may not be written", mount("tmpfs", "ro"), ROOM, ROOM, tmpdir()],
  ["keeps files on a disk", mount("ext4", "rw"), ROOM, ROOM, tmpdir()],
  ["was mounted over", `${mount("tmpfs", "rw")}overlay /dev/shm overlay rw 0 0\n`, ROOM, ROOM, tmpdir()],
  ["is missing", "/dev/vda / ext4 rw 0 0\n", ROOM, ROOM, tmpdir()],
  ["is small", mount("tmpfs", "rw"), ROOM, 2 ** 26, tmpdir()],
  ["is in a machine with little memory", mount("tmpfs", "rw"), 2 ** 30, ROOM, tmpdir()],
])("/dev/shm that %s", (_what, mounts, available, free, folder) => {
  expect(memoryFolder(mounts, available, free)).toBe(folder);
});
