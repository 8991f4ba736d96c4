import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LONG_PATH, newlyDeleted, openFilesBelow } from "./open-files.ts";

const THREAD_HOLDER = join(import.meta.dirname, "../../../test/support/thread-holder.py");
const HOLDER = join(import.meta.dirname, "../../../test/support/deep-holder.py");

let folder: string;
let children: ChildProcess[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "muster-open-"));
  children = [];
});
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

async function hold(below: string, kind: "folder" | "cwd" | "deleted"): Promise<number> {
  mkdirSync(below, { recursive: true });
  const child = spawn("python3", [HOLDER, below, kind], { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  await new Promise<void>((resolve, reject) => {
    child.stdout.once("data", () => resolve());
    child.once("exit", (code) => reject(new Error(`The holder ended with ${code}.`)));
  });
  return child.pid ?? -1;
}
const usesOf = (pid: number, below = folder) => openFilesBelow(below).files.filter((file) => file.pid === pid);

it("finds a deleted file that only one thread has open, under the number of another file", async () => {
  const file = join(folder, "file");
  writeFileSync(file, "");
  const child = spawn("python3", [THREAD_HOLDER, file, "deleted"], { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  await once(child.stdout, "data");
  const use = expect.stringMatching(/^task\/\d+\/fd\/3$/);
  expect(usesOf(child.pid ?? -1)).toEqual([{ pid: child.pid, use, path: file, isDeleted: true }]);
});

describe("an open file whose path no link in /proc can show", () => {
  it.each(["folder", "cwd", "deleted"] as const)("counts as below a folder of its file system: %s", async (kind) => {
    const pid = await hold(join(folder, "tenant"), kind);
    const isDeleted = kind === "deleted";
    expect(usesOf(pid)).toEqual([{ pid, use: kind === "cwd" ? "cwd" : "fd/3", path: LONG_PATH, isDeleted }]);
    if (isDeleted) expect(newlyDeleted([], usesOf(pid))).toHaveLength(1);
  });

  it("does not count below a folder of another file system", async () => {
    const pid = await hold(join(folder, "tenant"), "folder");
    expect(usesOf(pid, "/proc")).toEqual([]);
  });
});
