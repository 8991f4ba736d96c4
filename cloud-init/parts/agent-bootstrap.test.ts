import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { listenOn, selfSigned, sha256Of, packageHub as startPackageHub } from "../package-hub.fixture.ts";
import { HostFolder, renderPart, sampleInput, sampleValues, skipWithout } from "../part.fixture.ts";

// Each test starts real shells, which take long on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const PART = "20-agent-bootstrap.sh";
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

const modeOf = (name: string) => (statSync(folder.path(name)).mode & 0o777).toString(8);
const withAgent = () => folder.tool("muster-agent");

/** The test's simulated dpkg installs the agent from any file. */
const DEB = Buffer.from("!<arch>\ndebian-binary");
const withDpkg = () => folder.tool("dpkg", 'cp "$root/usr/bin/systemctl" "$root/usr/bin/muster-agent"');

const packageHub = async (bytes: Buffer, answers: number[] = []) => {
  const hub = await startPackageHub(folder, bytes, answers);
  servers.push(hub.server);
  return hub;
};

describe("agent bootstrap in a folder", () => {
  it("writes configuration, CA and token for root only, writes the unit, and starts it", async () => {
    withAgent();
    const run = await folder.run(PART, input);
    expect(run.code).toBe(0);
    expect(JSON.parse(folder.read("etc/muster/agent.json"))).toEqual({
      hub_url: "https://hub.test:8443",
      node_id: input.nodeId,
      generation: 1,
      enrollment_token_file: "/etc/muster/enrollment-token",
      ca_file: "/etc/muster/ca.pem",
      task_signing_public_key: "A".repeat(43),
      root: folder.root,
    });
    expect(folder.read("etc/muster/ca.pem")).toBe(sampleValues().hub.caBundlePem);
    expect(folder.read("etc/muster/enrollment-token")).toBe(`${input.enrollmentToken}\n`);
    expect(["etc/muster", "etc/muster/agent.json", "etc/muster/enrollment-token"].map(modeOf)).toEqual([
      "700",
      "600",
      "600",
    ]);
    expect(folder.read("etc/systemd/system/muster-agent.service")).toMatch(
      /^ExecStart=\/usr\/bin\/muster-agent --config/m,
    );
    expect(folder.calls()).toEqual(["systemctl daemon-reload", "systemctl enable --now muster-agent.service"]);
  });

  it("leaves a status with the part's owner and result, and without a secret", async () => {
    withAgent();
    const run = await folder.run(PART, input);
    expect(run.status).toEqual({
      part: "20-agent-bootstrap",
      owner: "muster",
      started_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      ended_at: expect.stringMatching(/Z$/),
      exit_code: 0,
      message: `agent is installed and started for ${input.nodeId}, generation 1`,
    });
    expect(run.output).not.toContain(input.enrollmentToken);
  });

  it("is idempotent, and keeps a unit that a package installed", async () => {
    withAgent();
    folder.write("lib/systemd/system/muster-agent.service", "[Service]\n");
    expect((await folder.run(PART, input)).code).toBe(0);
    expect((await folder.run(PART, input)).code).toBe(0);
    expect(existsSync(folder.path("etc/systemd/system/muster-agent.service"))).toBe(false);
    expect(folder.calls().filter((call) => call.includes("restart"))).toEqual([]);
  });

  it("does not write the token again once the agent is enrolled for this node and generation", async () => {
    withAgent();
    const identity = JSON.stringify({ generation: 1, node_id: input.nodeId }, null, 2);
    folder.write("var/lib/muster/agent/identity.json", identity);
    const run = await folder.run(PART, input);
    expect(run).toMatchObject({ code: 0, status: { message: expect.stringContaining("left alone") } });
    expect(existsSync(folder.path("etc/muster/enrollment-token"))).toBe(false);
    expect(folder.calls()).toContain("systemctl enable --now muster-agent.service");
  });

  it("writes a new configuration for another generation, and restarts an agent whose configuration changed", async () => {
    withAgent();
    await folder.run(PART, input);
    folder.write("var/lib/muster/agent/identity.json", JSON.stringify({ node_id: input.nodeId, generation: 1 }));
    expect((await folder.run(PART, sampleInput({ generation: 12 }))).code).toBe(0);
    expect(JSON.parse(folder.read("etc/muster/agent.json"))).toMatchObject({ generation: 12 });
    expect(folder.calls()).toContain("systemctl try-restart muster-agent.service");
  });

  it("reports that starting the agent fails, also for an enrolled agent", async () => {
    withAgent();
    folder.tool("systemctl", "exit 5");
    folder.write("var/lib/muster/agent/identity.json", JSON.stringify({ node_id: input.nodeId, generation: 1 }));
    const run = await folder.run(PART, input);
    expect(run).toMatchObject({ code: 5, status: { exit_code: 5, message: "failed while starting the agent" } });
  });

  it("never uses the machine's own systemctl for a folder", async () => {
    withAgent();
    spawnSync("rm", [folder.path("usr/bin/systemctl")]);
    const run = await folder.run(PART, input);
    expect(run).toMatchObject({ code: 1, status: { message: expect.stringContaining("systemctl is not in") } });
  });
});

const noFetch = [skipWithout("curl", "curl"), skipWithout("openssl", "openssl")].includes(true);
describe.skipIf(noFetch)("the agent package", () => {
  it("is fetched from the hub with the token and the given CA, verified and installed", async () => {
    withDpkg();
    const { seen, values } = await packageHub(DEB, [503]);
    const run = await folder.run(PART, values, QUICK);
    expect(run).toMatchObject({ code: 0, status: { exit_code: 0 } });
    expect(seen).toEqual([`Bearer ${input.enrollmentToken}`, `Bearer ${input.enrollmentToken}`]);
    expect(folder.calls()[0]).toMatch(/^dpkg -i .*\/muster-agent\.deb$/);
  });

  it.each([
    ["half-installed", "echo half-installed", true],
    ["unpacked and not configured", "echo unpacked", true],
    ["installed", "echo installed", false],
    ["installed, and waits for a trigger", "echo triggers-pending", false],
    ["not known to dpkg", "exit 1", false],
  ])("is installed again only if needed when its program exists and dpkg says: %s", async (_, query, again) => {
    folder.tool("dpkg", 'echo "echo installed" >"$root/usr/bin/dpkg-query"');
    folder.tool("dpkg-query", query);
    folder.tool("muster-agent", "");
    const { values } = await packageHub(DEB);
    expect((await folder.run(PART, values, QUICK)).code).toBe(0);
    expect(folder.calls().some((call) => call.startsWith("dpkg -i "))).toBe(again);
  });

  it("is refused when it is no .deb", async () => {
    withDpkg();
    const { values } = await packageHub(Buffer.from([0x1f, 0x8b, 8, 0]));
    const run = await folder.run(PART, values, QUICK);
    expect(run).toMatchObject({ code: 1, status: { message: expect.stringContaining("is no .deb") } });
    expect(folder.calls()).toEqual([]);
  });

  it("is refused when its checksum differs", async () => {
    const { values } = await packageHub(DEB);
    const agent = { ...values.agent, packageSha256: "1".repeat(64) };
    const run = await folder.run(PART, { ...values, agent }, QUICK);
    expect(run).toMatchObject({ code: 1, status: { message: expect.stringContaining("has SHA-256") } });
    expect(existsSync(folder.path("usr/bin/muster-agent"))).toBe(false);
  });

  it("fails at once when the token is refused", async () => {
    const { seen, values } = await packageHub(DEB);
    const run = await folder.run(PART, { ...values, enrollmentToken: "y".repeat(43) }, QUICK);
    expect(run).toMatchObject({ code: 1, status: { exit_code: 1, message: expect.stringContaining("answered 401") } });
    expect(seen).toHaveLength(1);
    expect(JSON.stringify(run)).not.toContain("yyyyyyyy");
  });

  it("is not fetched from a hub with a certificate of another CA", async () => {
    const { seen, values } = await packageHub(DEB);
    const run = await folder.run(
      PART,
      { ...values, hub: { ...values.hub, caBundlePem: selfSigned(folder).cert } },
      QUICK,
    );
    expect(run).toMatchObject({ code: 1, status: { message: expect.stringContaining("another CA, or its clock") } });
    expect(seen).toEqual([]);
  });

  it("is fetched from another server without the token", async () => {
    withDpkg();
    const bytes = DEB;
    const seen: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.end(bytes);
    });
    servers.push(server);
    const agent = { packageUrl: `http://127.0.0.1:${await listenOn(server)}/p?sig=1`, packageSha256: sha256Of(bytes) };
    expect((await folder.run(PART, sampleInput({ agent }), QUICK)).code).toBe(0);
    expect(seen).toEqual([undefined]);
  });

  it("leaves a failed status when no server answers, and succeeds later", async () => {
    const agent = { packageUrl: "https://127.0.0.1:9/p", packageSha256: "0".repeat(64) };
    const failed = await folder.run(PART, sampleInput({ agent }), QUICK);
    expect(failed).toMatchObject({ code: 1, status: { exit_code: 1, owner: "muster" } });
    withAgent();
    expect(await folder.run(PART, input)).toMatchObject({ code: 0, status: { exit_code: 0 } });
  });

  it.each([
    ["https://hub.test:8443/p", true],
    ["https://hub.test/p", false],
    ["https://hub.test:8444/p", false],
    ["http://hub.test:8443/p", false],
  ])("with the address %s belongs to the hub: %s", (packageUrl, hubs) => {
    const rendered = renderPart(PART, sampleInput({ agent: { packageUrl, packageSha256: "0".repeat(64) } }));
    expect(rendered).toContain(`PACKAGE_FROM_HUB='${hubs}'`);
  });

  it("fails with a message when it has no address", async () => {
    expect(await folder.run(PART, input)).toMatchObject({
      code: 1,
      status: { message: expect.stringContaining("no package address was given") },
    });
  });
});
