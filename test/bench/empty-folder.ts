import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { mayMountLoop } from "../support/mount-namespace.ts";
import type { Figure } from "./figure.ts";

const FILES = 200_000;
const FILES_IN_A_FOLDER = 100;
const BYTES = 50_000;
const PAIRS = 3;
const PROGRAM = join(import.meta.dirname, "../support/empty-folder-process.ts");
/** Shell commands that make an ext4 file system in memory, so that the measured time does not depend on the computer's disk. */
const ON_EXT4_IN_MEMORY = `mount -t tmpfs -o size=4g none "$0"; truncate -s 13G "$0/image"; mkfs.ext4 -q -N 400000 "$0/image"
mkdir "$0/disk"; mount -o loop "$0/image" "$0/disk"; exec "$1" "$2" "$0/disk"`;

/**
 * Measures how long the agent's worker needs to empty a folder, compared with `rm -rf` of the same tree. Each measured duration of emptying a folder
 * is the median of several runs.
 */
export async function measureEmptyFolder(stateDir: string): Promise<Figure[]> {
  mkdirSync(stateDir, { recursive: true });
  const where = mayMountLoop ? "ext4 in memory" : "the disk of this machine";
  const printed = mayMountLoop
    ? execFileSync(
        "unshare",
        ["-m", "sh", "-ec", ON_EXT4_IN_MEMORY, stateDir, process.execPath, import.meta.filename],
        { encoding: "utf8" },
      )
    : execFileSync(process.execPath, [import.meta.filename, stateDir], { encoding: "utf8" });
  const pairs: { readonly own: number; readonly rm: number }[] = JSON.parse(printed);
  const own = median(pairs.map((pair) => pair.own));
  const rm = median(pairs.map((pair) => pair.rm));
  const note = `${FILES} files of ${BYTES} bytes, ${where}, median of ${PAIRS}`;
  return [
    { name: "emptying a folder, with the start of the worker", value: own, unit: "s", note },
    { name: "rm -rf of the same tree", value: rm, unit: "s", note },
    { name: "emptying a folder, ratio to rm -rf", value: own / rm, unit: "", note, atMost: 1.2 },
  ];
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/**
 * Makes files whose blocks are allocated and not written, because Node.js cannot allocate blocks. To remove a file, a file system frees the file's
 * blocks and does not read them.
 */
const MAKE_TREE = `
import os, sys
root, files, in_a_folder, size = sys.argv[1], *map(int, sys.argv[2:])
for folder in range(files // in_a_folder):
    path = f"{root}/a{folder % 10}/b{folder}"
    os.makedirs(path)
    for file in range(in_a_folder):
        handle = os.open(f"{path}/f{file}", os.O_WRONLY | os.O_CREAT)
        os.posix_fallocate(handle, 0, size)
        os.close(handle)
`;

function makeTree(root: string): void {
  const numbers = [FILES, FILES_IN_A_FOLDER, BYTES].map(String);
  execFileSync("python3", ["-c", MAKE_TREE, root, ...numbers], { stdio: ["ignore", "ignore", "inherit"] });
}

function secondsOf(work: () => void): number {
  const began = performance.now();
  work();
  return (performance.now() - began) / 1000;
}

function measurePairs(folder: string): void {
  const tree = join(folder, "tree");
  const remove = (command: string, args: readonly string[]): number => {
    rmSync(tree, { recursive: true, force: true });
    makeTree(tree);
    execFileSync("sync");
    return secondsOf(() => execFileSync(command, [...args], { stdio: "ignore" }));
  };
  const pairs = Array.from({ length: PAIRS }, () => ({
    own: remove(process.execPath, [PROGRAM, folder, "/tree", "scratch"]),
    rm: remove("rm", ["-rf", tree]),
  }));
  process.stdout.write(JSON.stringify(pairs));
}

const [folder] = process.argv.slice(2);
if (process.argv[1] === import.meta.filename && folder !== undefined) measurePairs(folder);
