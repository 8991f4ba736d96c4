import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { until } from "../../test/support/until.ts";
import { hasEnded, parseStat } from "./proc-stat.ts";
import { openFilesOf, readProcesses } from "./residue/processes.ts";
import type { Reading } from "./residue/reading.ts";
import { aliveInSession, isLeaderAlive, readProcess } from "./workers/processes.ts";

/** A program that ends its first thread, while another thread runs and a file is open. */
const LEADERLESS = `
import ctypes, os, threading, time
fd = os.open("/dev/zero", os.O_RDONLY)
threading.Thread(target=lambda: time.sleep(1000)).start()
ctypes.CDLL(None).pthread_exit(None)
`;

const readingOf = ({ root, system }: HostFolder): Reading => ({
  root,
  tenant: null,
  run: system.run,
  digest: (text) => text,
  signal: new AbortController().signal,
  pauseMs: 0,
});

describe("the facts of a process in /proc", () => {
  it("are found after a name with spaces and parentheses", () => {
    const text = `4711 (a) S (b\n) D 17 4711 4710 34816 4711 4194304 0 0 0 0 0 0 0 0 20 0 3 0 99 0 0\n`;
    expect(parseStat(text)).toEqual({
      comm: "a) S (b\n",
      state: "D",
      parent: 17,
      session: 4710,
      terminal: 34_816,
      isKernelThread: false,
      threads: 3,
      startTicks: "99",
    });
    expect(parseStat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 4 0\n")).toMatchObject({
      isKernelThread: true,
      startTicks: "4",
    });
  });

  it.each([
    ["R", 1, false],
    ["S", 1, false],
    ["D", 1, false],
    ["T", 1, false],
    ["Z", 1, true],
    ["Z", 0, true],
    ["Z", 2, false],
    ["X", 1, true],
    ["X", 2, true],
  ])("in state %s with %i threads mean that it has ended: %s", (state, threads, ended) => {
    expect(hasEnded({ state, threads })).toBe(ended);
  });

  it("show a process whose first thread has ended as one that runs", async (context) => {
    context.skip(spawnSync("python3", ["-V"]).status !== 0, "python3 is not installed");
    const host = new HostFolder();
    const child = spawn("python3", ["-c", LEADERLESS], { stdio: "inherit", detached: true });
    const pid = child.pid ?? -1;
    try {
      await until("the first thread has ended", () => (readProcess(pid)?.state === "Z" ? true : undefined));
      const start_ticks = readProcess(pid)?.startTicks ?? "";
      expect(isLeaderAlive({ pid, start_ticks })).toBe(true);
      expect(aliveInSession({ pid, start_ticks })).toMatchObject([{ pid, threads: 2 }]);

      mkdirSync(host.path("proc"), { recursive: true });
      symlinkSync(`/proc/${pid}`, join(host.root, "proc", String(pid)));
      const reading = readingOf(host);
      expect(await readProcesses(reading)).toMatchObject([
        {
          pid,
          isZombie: false,
          exe: expect.stringContaining("python"),
          args: expect.arrayContaining(["-c", LEADERLESS]),
        },
      ]);
      expect((await openFilesOf(reading, pid)).map(({ target }) => target)).toContain("/dev/zero");
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
      host.remove();
    }
    expect(isLeaderAlive({ pid, start_ticks: "1" })).toBe(false);
  });

  it("show a file that only one thread of a process has open", async (context) => {
    context.skip(spawnSync("python3", ["-V"]).status !== 0, "python3 is not installed");
    const host = new HostFolder();
    const script = join(import.meta.dirname, "../../test/support/thread-holder.py");
    const child = spawn("python3", [script, "/dev/zero", "open"], { stdio: ["pipe", "pipe", "inherit"] });
    try {
      await once(child.stdout, "data");
      symlinkSync(`/proc/${child.pid}`, join(host.root, "proc", String(child.pid)));
      const found = await openFilesOf(readingOf(host), child.pid ?? -1);
      expect(found.map(({ target }) => target)).toEqual(expect.arrayContaining(["/dev/null", "/dev/zero"]));
      expect(
        found.filter(({ target }) => target.startsWith("pipe:")).length,
        "shared descriptors are told once",
      ).toBeLessThan(5);
    } finally {
      child.kill("SIGKILL");
      host.remove();
    }
  });
});
