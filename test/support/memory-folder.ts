/**
 * The parent of the folders with the PostgreSQL databases of the tests. On a disk's file system, PostgreSQL needs ten times as much processor time as
 * in memory to create a test's database, because it creates 1,300 files.
 */
import { readFileSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";

const SHARED_MEMORY = "/dev/shm";
/** The databases of a whole test run need less than a quarter of `ROOM_BYTES`. */
const ROOM_BYTES = 4 * 2 ** 30;

/**
 * Returns `/dev/shm` if it keeps files in memory, may hold programs, and has enough room, and otherwise the folder for temporary files. A full
 * `/dev/shm` would use up the machine's memory, so the machine must also have `ROOM_BYTES` of available memory.
 */
export function memoryFolder(
  mounts = readText("/proc/self/mounts"),
  available = availableBytes(),
  free = freeBytes(),
): string {
  const mount = mounts
    .split("\n")
    .map((line) => line.split(" "))
    .findLast(([, at]) => at === SHARED_MEMORY);
  const [, , type, options = ""] = mount ?? [];
  const usable = type === "tmpfs" && !["ro", "noexec"].some((word) => options.split(",").includes(word));
  return usable && available >= ROOM_BYTES && free >= ROOM_BYTES ? SHARED_MEMORY : tmpdir();
}

function availableBytes(): number {
  const [, kilobytes = "0"] = /^MemAvailable: +(\d+) kB$/m.exec(readText("/proc/meminfo")) ?? [];
  return Number(kilobytes) * 1024;
}

function freeBytes(): number {
  try {
    const { bavail, bsize } = statfsSync(SHARED_MEMORY);
    return bavail * bsize;
  } catch {
    return 0;
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
