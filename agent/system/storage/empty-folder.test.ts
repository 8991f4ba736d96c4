import { spawn, spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../test/support/until.ts";
import { clearAttributesOn } from "./attributes.ts";
import { openFolderBelow } from "./descriptors.ts";
import { emptyFolder } from "./empty-folder.ts";
import { emptyFolderStep } from "./empty-folder-step.ts";
import { listeningSockets } from "./open-files.ts";
import type { Removed } from "./removal.ts";

const BOOT = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
let root: string;
let folder: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "muster-empty-"));
  folder = join(root, "scratch");
  mkdirSync(folder);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function empty(use: "temporary" | "scratch" = "scratch", look: () => void = () => undefined): Promise<Removed> {
  const top = openFolderBelow(root, "/scratch");
  try {
    return await emptyFolder(top, {
      use,
      path: folder,
      bootId: BOOT.replaceAll("-", ""),
      listening: listeningSockets(readFileSync("/proc/net/unix", "latin1")),
      clearAttributes: clearAttributesOn("/"),
      reach: "descriptor",
      look,
    });
  } finally {
    closeSync(top.fd);
  }
}
const run = () => ({
  root,
  signal: new AbortController().signal,
  throwIfStopped: () => undefined,
  progress: () => undefined,
});
const step = (path = "/scratch", mustBeMount = false) =>
  emptyFolderStep({ path, use: "scratch", must_be_mount: mustBeMount }, run(), "descriptor");
const left = (): string[] => readdirSync(folder);
/** The test counts only the files that it made itself. The hostile process of the test may make other files in the folder `victim`. */
const filesIn = (victim: string): number => readdirSync(victim).filter((name) => /^file\d+$/.test(name)).length;
const isRoot = process.getuid?.() === 0;
const hasAttributes = (): boolean => {
  const probe = join(tmpdir(), `muster-probe-${process.pid}`);
  writeFileSync(probe, "");
  const set = spawnSync("chattr", ["+i", probe]).status === 0;
  spawnSync("chattr", ["-i", probe]);
  rmSync(probe);
  return set;
};

describe("emptying a folder", () => {
  it("removes files, folders, links, sockets and pipes, and counts what it removed", async () => {
    mkdirSync(join(folder, "a/b/c"), { recursive: true });
    writeFileSync(join(folder, "a/file"), Buffer.alloc(8192));
    spawnSync("mkfifo", [join(folder, "a/b/pipe")]);
    const removed = await empty();
    expect(left()).toEqual([]);
    expect(removed).toMatchObject({ files: 2, folders: 3, bytes: 8192, failures: 0 });
  });

  it("removes names of any bytes", async () => {
    const names = [
      Buffer.from([0xff, 0xfe]),
      Buffer.from("line\nend"),
      Buffer.from("-rf"),
      Buffer.from("…"),
      Buffer.alloc(255, 0x80),
    ];
    const inFolder = (name: Buffer) => Buffer.concat([Buffer.from(`${folder}/`), name]);
    for (const name of names) writeFileSync(inFolder(name), "");
    mkdirSync(Buffer.concat([inFolder(Buffer.from([0xc0])), Buffer.from("/"), Buffer.from([0xc1])]), {
      recursive: true,
    });
    expect(await empty()).toMatchObject({ files: 5, folders: 2, failures: 0 });
    expect(left()).toEqual([]);
  });

  it("removes symbolic links and does not follow them", async () => {
    mkdirSync(join(root, "victim/inner"), { recursive: true });
    writeFileSync(join(root, "victim/file"), "");
    symlinkSync(join(root, "victim"), join(folder, "link"));
    symlinkSync("..", join(folder, "up"));
    await empty();
    expect(left()).toEqual([]);
    expect(readdirSync(join(root, "victim")).sort()).toEqual(["file", "inner"]);
  });

  it("removes a tree of 10,000 levels", async () => {
    let fd = openSync(folder, "r");
    for (let level = 0; level < 10_000; level += 1) {
      mkdirSync(`/proc/self/fd/${fd}/d`);
      const inner = openSync(`/proc/self/fd/${fd}/d`, "r");
      if (level % 1_000 === 0) writeFileSync(`/proc/self/fd/${fd}/file`, "");
      closeSync(fd);
      fd = inner;
    }
    closeSync(fd);
    expect(await empty()).toMatchObject({ files: 10, folders: 10_000, failures: 0 });
    expect(left()).toEqual([]);
  });

  it("counts files that another name keeps on the disk", async () => {
    writeFileSync(join(folder, "file"), Buffer.alloc(4096));
    linkSync(join(folder, "file"), join(root, "other"));
    expect(await empty()).toMatchObject({ files: 1, hardLinks: 1, bytes: 0 });
    expect(existsSync(join(root, "other"))).toBe(true);
  });

  it.skipIf(!isRoot)("keeps what the running system needs, and nothing of a tenant that looks like it", async () => {
    const mine = `systemd-private-${BOOT.replaceAll("-", "")}-a.service-x`;
    mkdirSync(join(folder, mine, "tmp"), { recursive: true, mode: 0o700 });
    mkdirSync(join(folder, ".X11-unix"));
    writeFileSync(join(folder, ".X11-unix/file"), "");
    mkdirSync(join(folder, "systemd-private-0-a.service-x"));
    mkdirSync(join(folder, "snap-private-tmp/snap.a/tmp"), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, "snap-private-tmp/snap.a/tmp/file"), "");
    const server = createServer().listen(join(folder, ".X11-unix/X0"));
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      expect(await empty("temporary")).toMatchObject({ failures: 0 });
      expect(left().sort()).toEqual([".X11-unix", "snap-private-tmp", mine].sort());
      expect(readdirSync(join(folder, mine))).toEqual(["tmp"]);
      expect(readdirSync(join(folder, ".X11-unix"))).toEqual(["X0"]);
      expect(readdirSync(join(folder, "snap-private-tmp/snap.a/tmp"))).toEqual([]);
      await empty("scratch");
      expect(left()).toEqual([]);
    } finally {
      server.close();
    }
  });

  it.skipIf(!isRoot || !hasAttributes())("clears the attributes that forbid a removal", async () => {
    mkdirSync(join(folder, "locked/inner"), { recursive: true });
    const odd = Buffer.concat([Buffer.from(`${folder}/locked/`), Buffer.from([0xff])]);
    writeFileSync(odd, "");
    writeFileSync(join(folder, "locked/file"), "");
    spawnSync("sh", ["-c", 'chattr +i "$0"/locked/* "$0"/locked; chattr +a "$0"', folder]);
    const removed = await empty();
    expect(removed).toMatchObject({ files: 2, folders: 2, failures: 0 });
    expect(removed.cleared).toBeGreaterThan(0);
    expect(left()).toEqual([]);
  });

  it.skipIf(!isRoot || !hasAttributes())("reports what it cannot remove, and removes everything else", async () => {
    mkdirSync(join(folder, "deep/locked"), { recursive: true });
    writeFileSync(join(folder, "deep/locked/file"), "");
    writeFileSync(join(folder, "deep/other"), "");
    spawnSync("chattr", ["+i", join(folder, "deep/locked/file")]);
    const top = openFolderBelow(root, "/scratch");
    const removed = await emptyFolder(top, {
      use: "scratch",
      path: folder,
      bootId: "",
      listening: new Set(),
      clearAttributes: () => false,
      reach: "descriptor",
      look: () => undefined,
    });
    closeSync(top.fd);
    expect(removed).toMatchObject({ failures: 1, named: ["file: the file system forbids the removal"] });
    expect(readdirSync(join(folder, "deep"))).toEqual(["locked"]);
    spawnSync("chattr", ["-i", join(folder, "deep/locked/file")]);
  });

  it("stops when it is told to stop", async () => {
    for (let number = 0; number < 5_000; number += 1) mkdirSync(join(folder, `d${number}`));
    const stopping = empty("scratch", () => {
      throw new Error("stop");
    });
    await expect(stopping).rejects.toThrow("stop");
    expect(left().length).toBeGreaterThan(0);
  });
});

describe("emptying a folder while a hostile process changes it", () => {
  it("never leaves the folder", async () => {
    const victim = join(root, "victim");
    mkdirSync(join(victim, "inner"), { recursive: true });
    for (let number = 0; number < 100; number += 1) {
      writeFileSync(join(victim, `file${number}`), "");
      writeFileSync(join(victim, "inner", `file${number}`), "");
    }
    mkdirSync(join(root, "aside"));
    const hostile = spawn(
      process.execPath,
      [join(import.meta.dirname, "../../../test/support/folder-swapper.ts"), folder, victim, join(root, "aside")],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    let swaps = 0;
    hostile.stdout.on("data", (text: Buffer) => {
      swaps = Number(text.toString().trim().split("\n").at(-1));
    });
    try {
      await until("the first swaps", () => (swaps > 100 ? true : undefined));
      const from = swaps;
      for (let round = 0; round < 200 || swaps < from + 2_000; round += 1) await empty();
      expect([filesIn(victim), filesIn(join(victim, "inner"))]).toEqual([100, 100]);
    } finally {
      hostile.kill("SIGKILL");
      await new Promise((resolve) => hostile.once("close", resolve));
    }
    expect(await empty()).toMatchObject({ failures: 0 });
    expect(left()).toEqual([]);
  });
});

describe("the cleaning step of a folder", () => {
  it("skips a missing scratch folder, but fails for a missing data disk", async () => {
    expect(await step("/none")).toMatchObject({ outcome: "skipped" });
    expect(await step("/none", true)).toMatchObject({ outcome: "failed" });
    expect(await step("/scratch", true)).toMatchObject({
      outcome: "failed",
      message: expect.stringContaining("mounted"),
    });
  });

  it("refuses a path through a symbolic link, and a folder of the system", async () => {
    mkdirSync(join(root, "etc"));
    writeFileSync(join(root, "etc/passwd"), "");
    symlinkSync("etc", join(root, "link"));
    symlinkSync(".", join(root, "self"));
    for (const path of ["/link", "/self/scratch", "/etc", "/"])
      expect([path, await step(path)]).toEqual([path, expect.objectContaining({ outcome: "failed" })]);
    expect(readdirSync(join(root, "etc"))).toEqual(["passwd"]);
  });

  it("fails when a removed file is still in use, and names the process", async () => {
    writeFileSync(join(folder, "log"), "secret");
    const user = spawn("sleep", ["1000"], { stdio: [openSync(join(folder, "log"), "r"), "ignore", "ignore"] });
    await until("the start of the process", () => (user.pid === undefined ? undefined : true));
    try {
      expect(await step()).toMatchObject({
        outcome: "failed",
        message: expect.stringContaining(String(user.pid)),
        evidence: { files: 1, failures: 0 },
      });
    } finally {
      user.kill("SIGKILL");
    }
    expect(left()).toEqual([]);
  });

  it("is ok with evidence when the folder is empty", async () => {
    writeFileSync(join(folder, "file"), "x");
    expect(await step()).toMatchObject({ outcome: "ok", evidence: { files: 1, open_files: 0, mounts: 0 } });
    expect(await step()).toMatchObject({ outcome: "ok", evidence: { files: 0 } });
  });
});
