import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { until } from "../../test/support/until.ts";
import { messageOf } from "../message-of.ts";
import { toolsOf } from "./exec.ts";
import { readProcess } from "./workers/processes.ts";

const PATIENT = { timeoutMs: 60_000 };
/** The time-out, in milliseconds, of a tool that hangs: enough to reach the hanging place, even on a loaded computer. */
const HASTY = { timeoutMs: 3_000, graceMs: 100 };

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
});
afterEach(() => host.remove());

const tool = (script: string): void => host.write("usr/bin/tool", `#!/bin/sh\n${script}\n`, 0o755);

describe("an attempt to run a tool", () => {
  it("passes arguments as they are, standard input, and a fixed environment", async () => {
    process.env["LD_PRELOAD_OF_A_TENANT"] = "x";
    tool('printf "%s|" "$@"; cat; env | cut -d= -f1 | sort | tr "\\n" " "; echo words >&2; exit 7');
    const ran = await host.system.attempt("tool", ["a b", "$(id)"], { ...PATIENT, input: "told\n" });
    delete process.env["LD_PRELOAD_OF_A_TENANT"];
    expect(ran).toEqual({
      kind: "ended",
      exitCode: 7,
      stdout: "a b|$(id)|told\nLC_ALL MUSTER_ROOT PATH PWD ",
      stderr: "words\n",
    });
  });

  it("of the agent's own process gets the same environment, and its result has no last newline", async () => {
    process.env["NODE_OPTIONS_OF_A_TENANT"] = "x";
    tool('printf "%s|" "$@"; cat; env | cut -d= -f1 | sort; echo words >&2; exit 7');
    const ran = await host.system.run("tool", ["a b", "$(id)"], 60_000, Buffer.from("told\n"));
    delete process.env["NODE_OPTIONS_OF_A_TENANT"];
    expect(ran).toEqual({ exitCode: 7, stdout: "a b|$(id)|told\nLC_ALL\nMUSTER_ROOT\nPATH\nPWD", stderr: "words" });
  });

  it.each([
    ["is not there", null, /^There is no tool below /],
    ["cannot be started", "#!/no/such/interpreter\n", /tool could not be run: /],
    ["was ended by a signal", "#!/bin/sh\necho why >&2; kill -9 $$\n", /^tool was ended by SIGKILL. why$/],
    ["writes without end", "#!/bin/sh\nexec cat /dev/zero\n", /^tool wrote more than 1000000 bytes and was stopped.$/],
  ])("of the agent's own process throws an error if the tool %s", async (_what, script, message) => {
    if (script !== null) host.write("usr/bin/tool", script, 0o755);
    await expect(host.system.run("tool", [], 60_000)).rejects.toThrow(message);
  });

  it("tells a tool that is not installed, or that the kernel does not start", async () => {
    expect(await host.system.attempt("tool", [], PATIENT)).toMatchObject({ kind: "missing" });
    host.write("usr/bin/tool", "#!/no/such/interpreter\n", 0o755);
    expect(await host.system.attempt("tool", [], PATIENT)).toMatchObject({ kind: "missing" });
  });

  it("removes a secret from what a tool printed before it cuts the text", async () => {
    // The name of the secret lies just before the cut, so a search for secrets after the cut would not find the secret.
    const secret = "hunter2-of-the-tenant";
    const printing = (most: number) =>
      `{ printf "password=${secret}"; head -c ${most - secret.length} /dev/zero | tr "\\0" " "; } >&2; exit 1`;
    tool(printing(4_000));
    expect(JSON.stringify(await host.system.attempt("tool", [], PATIENT))).not.toContain("hunter2");
    tool(printing(2_000));
    expect(JSON.stringify(await host.system.run("tool", [], 60_000))).not.toContain("hunter2");
  });

  it("tells the signal that ended a tool", async () => {
    tool("kill -9 $$");
    expect(await host.system.attempt("tool", [], PATIENT)).toMatchObject({
      kind: "ended",
      exitCode: 128,
      stderr: "The tool was ended by SIGKILL. ",
    });
  });

  it("ends a tool that writes without end", async () => {
    tool("exec cat /dev/zero");
    const ran = await host.system.attempt("tool", [], PATIENT);
    expect(ran).toMatchObject({ kind: "ended", stderr: expect.stringContaining("The tool wrote more than") });
  });

  it("ends what a tool has left behind, if that writes without end", async () => {
    tool("yes left >&2 & echo $! > $MUSTER_ROOT/left");
    const ran = await host.system.attempt("tool", [], PATIENT);
    expect(ran).toMatchObject({
      kind: "ended",
      exitCode: 0,
      stderr: expect.stringMatching(/^The tool wrote more than/),
    });
    const left = Number(host.read("left"));
    await until("the left process has ended", () => (readProcess(left) === null ? true : undefined));
  });

  it("ends a tool that writes errors without end, and keeps their last characters", async () => {
    tool("yes error >&2");
    const ran = await host.system.attempt("tool", [], PATIENT);
    expect(ran).toMatchObject({
      kind: "ended",
      // The agent may end the tool while the tool writes a line, so the last line may be cut.
      stderr: expect.stringMatching(/^The tool wrote more than .*error\n(e(r(r(or?)?)?)?)?$/s),
    });
    tool('head -c 9000 /dev/zero | tr "\\0" x >&2; echo the end >&2; exit 3');
    const short = await host.system.attempt("tool", [], PATIENT);
    expect(short).toMatchObject({ kind: "ended", exitCode: 3, stderr: `${"x".repeat(4_000 - 8)}the end\n` });
  });

  it("ends a tool that ignores SIGTERM, and tells where it waited", async () => {
    tool("trap '' TERM; exec sleep 1000");
    const ran = await host.system.attempt("tool", [], HASTY);
    expect(ran).toMatchObject({ kind: "hung", state: "S", wchan: expect.stringMatching(/nanosleep|^$/) });
    const { pid } = ran as { pid: number };
    await until("the tool has ended", () => (readProcess(pid) === null ? true : undefined));
  });

  it("does not wait for what a tool has left behind", async () => {
    tool("sleep 1000 & echo $! > $MUSTER_ROOT/left; echo done");
    const ran = await host.system.attempt("tool", [], { timeoutMs: 5_000, graceMs: 100 });
    process.kill(Number(host.read("left")), "SIGKILL");
    expect(ran).toMatchObject({ kind: "ended", exitCode: 0, stdout: "done\n" });
  });
});

const run = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0;

/** A frozen file system, whose writers wait in the kernel until its thaw, like a tool in a hanging driver. */
class FrozenDisk {
  readonly folder = mkdtempSync(join(tmpdir(), "muster-frozen-"));
  readonly mount = join(this.folder, "mount");
  readonly isFrozen: boolean;
  constructor() {
    const image = join(this.folder, "image");
    mkdirSync(this.mount);
    this.isFrozen =
      process.getuid?.() === 0 &&
      run("truncate", "-s", "8M", image) &&
      run("mkfs.ext4", "-q", image) &&
      run("mount", "-o", "loop", image, this.mount) &&
      run("fsfreeze", "-f", this.mount);
  }
  thaw(): void {
    if (this.isFrozen) run("fsfreeze", "-u", this.mount);
  }
  remove(): void {
    run("umount", this.mount);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

describe("a tool that hangs in the kernel", () => {
  it("is abandoned after SIGKILL, also by the agent's own process, and its process and place are told (SKIPPED where no file system can be frozen)", async (context) => {
    const disk = new FrozenDisk();
    try {
      context.skip(!disk.isFrozen, "no file system can be frozen here");
      tool(`echo x > ${disk.mount}/file`);
      const own = toolsOf(host.root, HASTY.graceMs)("tool", [], HASTY.timeoutMs).catch(messageOf);
      const ran = await host.system.attempt("tool", [], HASTY);
      expect(await own).toMatch(/^tool did not end within 3000 ms. Its process \d+ is stuck in the kernel \(state D/);
      expect(ran).toMatchObject({ kind: "hung", state: "D", isAlive: true, wchan: expect.stringMatching(/\w/) });
      const { pid } = ran as { pid: number };
      expect(readProcess(pid)?.state).toBe("D");
      disk.thaw();
      await until("the tool has ended", () => (readProcess(pid) === null ? true : undefined));
    } finally {
      disk.thaw();
      disk.remove();
    }
  });
});
