import { execFile, spawnSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type BootstrapInput, composeBootstrapScript } from "./bootstrap-script.ts";
import { HostFolder, sampleValues, skipWithout } from "./part.fixture.ts";

const NODE = sampleValues().nodeId;
const input = (changes: Partial<BootstrapInput> = {}): BootstrapInput => {
  const { nodeId, generation, hub, enrollmentToken } = sampleValues();
  const packages = { amd64: { url: "https://hub.test:8443/p", sha256: "0".repeat(64) } };
  return { nodeId, generation, hub, enrollmentToken, packages, renderedAt: Math.floor(Date.now() / 1000), ...changes };
};

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
  host.tool("dpkg", "echo amd64");
  host.tool("systemctl");
});
afterEach(() => host.remove());

const enrolledAs = (nodeId: string): void =>
  host.write("var/lib/muster/agent/identity.json", JSON.stringify({ node_id: nodeId, generation: 1 }));

function run(changes: Partial<BootstrapInput> = {}): Promise<{ code: number; output: string }> {
  host.write("tmp/bootstrap.sh", composeBootstrapScript(input(changes)), 0o700);
  const env = { PATH: process.env["PATH"] ?? "", MUSTER_ROOT: host.root, MUSTER_ENROLL_SECONDS: "1" };
  return new Promise((resolve) => {
    execFile("bash", [host.path("tmp/bootstrap.sh")], { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : typeof error.code === "number" ? error.code : -1, output: stdout + stderr });
    });
  });
}

describe("the script of manual mode", () => {
  it.skipIf(skipWithout("shellcheck", "shellcheck"))("passes shellcheck", () => {
    const { status, stdout } = spawnSync("shellcheck", ["--exclude=SC2016", "-"], {
      input: composeBootstrapScript(input()),
      encoding: "utf8",
    });
    expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
  });

  it("does the same as the part of the first boot, and waits for the enrollment", async () => {
    host.tool("muster-agent");
    host.tool(
      "systemctl",
      `[ "$1" != enable ] || { mkdir -p "$root/var/lib/muster/agent"; printf '{"node_id":"${NODE}","generation":1}' >"$root/var/lib/muster/agent/identity.json"; }`,
    );
    const { code, output } = await run();
    expect(output).toContain(`enrolled as ${NODE}`);
    expect(code).toBe(0);
    expect(JSON.parse(host.read("etc/muster/agent.json"))).toMatchObject({ node_id: NODE, root: host.root });
    expect(host.calls()).toContain("systemctl enable --now muster-agent.service");
  });

  it("names the log to read when the agent does not enroll", async () => {
    host.tool("muster-agent");
    const { code, output } = await run();
    expect(code).toBe(1);
    expect(output).toContain("has not enrolled yet; its log says why: journalctl -u muster-agent");
    // An agent that has not enrolled yet may enroll later, so the bootstrap part that installs the agent reports success. If the bootstrap part that
    // installs the agent reported a failure, the hub would keep the node out of service.
    expect(JSON.parse(host.read("var/lib/muster/bootstrap/20-agent-bootstrap.status"))).toMatchObject({ exit_code: 0 });
  });

  it.each([
    [
      "no package for its architecture",
      () => host.tool("dpkg", "echo riscv64"),
      {},
      "this host is riscv64 and the hub has agent packages for: amd64",
    ],
    ["no dpkg", () => spawnSync("rm", [host.path("usr/bin/dpkg")]), {}, "this host has no dpkg"],
    [
      "a clock that is behind",
      () => undefined,
      { renderedAt: Math.floor(Date.now() / 1000) + 3_600 },
      / s behind of the hub's; set it/,
    ],
    [
      "a clock that is ahead",
      () => undefined,
      { renderedAt: Math.floor(Date.now() / 1000) - 3_600 },
      / s ahead of the hub's; set it/,
    ],
    [
      "another node's identity",
      () => enrolledAs("11111111-1111-4111-8111-111111111111"),
      {},
      "enrolled as another node already",
    ],
  ] as readonly [string, () => unknown, Partial<BootstrapInput>, string | RegExp][])(
    "stops at a host with %s, and has changed nothing",
    async (_what, spoil, changes, said) => {
      spoil();
      const { code, output } = await run(changes);
      expect(code).toBe(1);
      expect(output).toMatch(said);
      expect(() => host.read("etc/muster/agent.json")).toThrow();
      expect(host.calls().filter((call) => call.startsWith("systemctl"))).toEqual([]);
    },
  );

  it("runs only as root", () => {
    const { status, stderr } = spawnSync("bash", ["-c", "id() { echo 1000; }; export -f id; exec bash -s"], {
      input: composeBootstrapScript(input()),
      encoding: "utf8",
    });
    expect({ status, stderr }).toMatchObject({ status: 1, stderr: expect.stringContaining("run this as root") });
  });

  it("refuses values that a script must not contain", () => {
    expect(() => composeBootstrapScript(input({ enrollmentToken: "short" }))).toThrow();
    expect(() =>
      composeBootstrapScript(input({ packages: { "a b": { url: "https://h/p", sha256: "0".repeat(64) } } })),
    ).toThrow();
  });
});
