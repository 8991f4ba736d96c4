import { execFile, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { dirname } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../../test/support/until.ts";
import { NO_ANSWER, packageHub } from "../package-hub.fixture.ts";
import { HostFolder, renderPart, sampleInput, skipWithout } from "../part.fixture.ts";

/** Tests how the next run of a part handles the files that a kill, a power cut or a full disk left behind. */
vi.setConfig({ testTimeout: 120_000 });

const PART = "20-agent-bootstrap.sh";
const STATE = "var/lib/muster/bootstrap";
const STATUS = `${STATE}/20-agent-bootstrap.status`;
const QUICK = { MUSTER_DOWNLOAD_ATTEMPTS: "2", MUSTER_DOWNLOAD_PAUSE_SECONDS: "0" };
const input = sampleInput();
let folder: HostFolder;
let servers: Server[] = [];
beforeEach(() => {
  folder = new HostFolder();
  folder.tool("systemctl");
});
afterEach(() => {
  folder.remove();
  for (const server of servers) server.close();
  servers = [];
});

const namesIn = (name: string): string[] => (existsSync(folder.path(name)) ? readdirSync(folder.path(name)) : []);
/** Returns the files of the test's host that contain the text, except the file of the part itself. */
const holding = (text: string): string[] =>
  readdirSync(folder.root, { recursive: true, encoding: "utf8" })
    .filter((name) => !name.startsWith("tmp") && statSync(folder.path(name)).isFile())
    .filter((name) => readFileSync(folder.path(name)).includes(text));

describe("a full disk", () => {
  /** Runs the part with a limit of zero bytes for each file that it writes, which simulates a full disk. */
  const runFull = (): Promise<{ code: unknown; output: string }> => {
    folder.write(`tmp/${PART}`, renderPart(PART, input), 0o755);
    const command = ["-c", `trap '' XFSZ; ulimit -f 0; exec bash "$1"`, "-", folder.path(`tmp/${PART}`)];
    const env = { PATH: process.env["PATH"] ?? "", MUSTER_ROOT: folder.root };
    return new Promise((resolve) => {
      execFile("bash", command, { env }, (error, stdout, stderr) =>
        resolve({ code: error?.code, output: stdout + stderr }),
      );
    });
  };

  it("is reported as a full disk, and leaves no empty status and no temporary file", async () => {
    const { code, output } = await runFull();
    expect(code).toBe(1);
    expect(output).toContain("20-agent-bootstrap ended with 1: ");
    expect(output).toContain("cannot be written; see whether its disk is full");
    expect(namesIn(STATE)).toEqual([]);
  });

  it("keeps the previous status", async () => {
    folder.tool("muster-agent");
    expect((await folder.run(PART, input)).code).toBe(0);
    const before = folder.read(STATUS);
    expect((await runFull()).code).toBe(1);
    expect(folder.read(STATUS)).toBe(before);
    expect([...namesIn(STATE), ...namesIn("etc/muster")].filter((name) => name.startsWith("."))).toEqual([]);
  });
});

describe("a power cut", () => {
  it("leaves each file complete: its bytes reach the disk before its name, and its name before the next step", async () => {
    folder.tool("muster-agent");
    for (const tool of ["sync", "mv"]) folder.tool(tool, `command -p ${tool} "$@"`);
    expect((await folder.run(PART, input)).code).toBe(0);
    const calls = folder.calls();
    const moved = calls.flatMap((call, at) => {
      const [tool, , from = "", to = ""] = call.split(" ");
      if (tool !== "mv") return [];
      expect([calls[at - 1], calls[at + 1]]).toEqual([`sync ${from}`, `sync ${dirname(to)}`]);
      return [to.slice(folder.root.length + 1)];
    });
    expect([...new Set(moved)].toSorted()).toEqual([
      "etc/muster/agent.json",
      "etc/muster/ca.pem",
      "etc/muster/enrollment-token",
      "etc/systemd/system/muster-agent.service",
      STATUS,
    ]);
  });

  const withoutTools = [skipWithout("curl", "curl"), skipWithout("openssl", "openssl")].includes(true);
  it.skipIf(withoutTools)(
    "during a download leaves no token behind once the part has run again with any result",
    async () => {
      const hub = await packageHub(folder, Buffer.from("!<arch>"), [NO_ANSWER, 503, 503]);
      servers.push(hub.server);
      folder.write(`tmp/${PART}`, renderPart(PART, hub.values), 0o755);
      const env = { PATH: process.env["PATH"] ?? "", MUSTER_ROOT: folder.root };
      const part = spawn("bash", [folder.path(`tmp/${PART}`)], { env, detached: true, stdio: "ignore" });
      const gone = new Promise((resolve) => part.once("exit", resolve));
      await until("the hub to be asked", () => hub.seen.length > 0 || undefined);
      process.kill(-(part.pid ?? 0), "SIGKILL");
      await gone;
      // An interrupted write of the configuration leaves a temporary file that also contains the enrollment token.
      folder.write("etc/muster/.muster.AbCdEf", `${input.enrollmentToken}\n`, 0o600);
      expect(holding(input.enrollmentToken)).toHaveLength(3);
      expect((await folder.run(PART, hub.values, QUICK)).code).toBe(1);
      expect(holding(input.enrollmentToken)).toEqual(["etc/muster/enrollment-token"]);
      expect(namesIn(STATE)).toEqual(["20-agent-bootstrap.status"]);
    },
  );

  it.skipIf(withoutTools || skipWithout("dpkg-deb", "dpkg"))(
    "during dpkg's installation makes the next run install the agent again, although its command exists",
    async () => {
      const deb = builtPackage();
      cutInstall();
      const hub = await packageHub(folder, deb);
      servers.push(hub.server);
      expect(await folder.run(PART, hub.values, QUICK)).toMatchObject({ code: 0, status: { exit_code: 0 } });
      expect(stateOfPackage()).toBe("installed");
      expect(namesIn("usr/lib/muster/agent")).toHaveLength(FILES);
      // The agent part does not fetch the agent's package if this package is completely installed.
      expect((await folder.run(PART, hub.values, QUICK)).code).toBe(0);
      expect(hub.seen).toHaveLength(1);
    },
  );
});

const FILES = 400;

/**
 * Builds a test package in which the agent's command comes before the files that the command needs. Also makes a dpkg that installs only into the
 * test's folder.
 */
function builtPackage(): Buffer {
  const control = "Package: muster-agent\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@t>\nDescription: t\n";
  folder.write("pack/DEBIAN/control", control);
  folder.write("pack/usr/bin/muster-agent", "#!/bin/sh\n", 0o755);
  mkdirSync(folder.path("pack/usr/lib/muster/agent"), { recursive: true });
  for (let at = 0; at < FILES; at += 1) writeFileSync(folder.path(`pack/usr/lib/muster/agent/${at}`), `${at}\n`);
  const built = spawnSync("dpkg-deb", ["-Znone", "--build", folder.path("pack"), folder.path("agent.deb")]);
  if (built.status !== 0) throw new Error(built.stderr.toString());
  for (const name of ["info", "updates"]) mkdirSync(folder.path(`var/lib/dpkg/${name}`), { recursive: true });
  folder.write("var/lib/dpkg/status", "");
  const options = '--root="$root" --force-not-root --force-bad-path --log=/dev/null';
  folder.tool("dpkg", `exec /usr/bin/dpkg ${options} "$@"`);
  folder.tool("dpkg-query", 'command -p dpkg-query --admindir="$root/var/lib/dpkg" "$@"');
  return readFileSync(folder.path("agent.deb"));
}

const stateOfPackage = (): string =>
  spawnSync(folder.path("usr/bin/dpkg-query"), ["-W", "-f", `\${db:Status-Status}`, "muster-agent"]).stdout.toString();

/**
 * Kills dpkg as soon as dpkg has installed the agent's command. If dpkg has already installed all other files, `cutInstall` repeats the installation.
 * dpkg runs with low priority, because otherwise it would finish before the kill on a busy machine.
 */
function cutInstall(): void {
  const script = `
    for attempt in $(seq 200); do
      nice -n 19 "$1/usr/bin/dpkg" -i "$1/agent.deb" &
      until [ -e "$1/usr/bin/muster-agent" ]; do kill -0 $! || break; done
      kill -9 $!; wait
      [ "$(ls "$1/usr/lib/muster/agent" | grep -vc dpkg-new)" -eq ${FILES} ] || exit 0
      # As before the first: dpkg does not remove what it was cut in.
      rm -rf "$1/usr/bin/muster-agent" "$1/usr/lib/muster" "$1"/var/lib/dpkg/{info,updates}/*
      : > "$1/var/lib/dpkg/status"
    done
    exit 1`;
  const cut = spawnSync("bash", ["-c", script, "-", folder.root], { encoding: "utf8" });
  if (cut.status !== 0) throw new Error(`dpkg was never cut: ${cut.stdout}${cut.stderr}`);
  expect(existsSync(folder.path("usr/bin/muster-agent"))).toBe(true);
  expect(stateOfPackage()).not.toBe("installed");
}
