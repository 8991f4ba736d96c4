import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { enrollmentTokens } from "../../../hub/db/schema/index.ts";
import { agentPackageUrl, PACKAGES_PATH } from "../../../hub/gateway/agent-package-route.ts";
import { AgentPackages } from "../../../hub/gateway/agent-packages.ts";
import { BOOTSTRAP_SCRIPT_PATH } from "../../../hub/gateway/bootstrap-script-route.ts";
import { NODE_RATES } from "../../../hub/gateway/budgets.ts";
import { tokenHash } from "../../../hub/node/enrollment-tokens.ts";
import { type Answer, GatewayRig } from "../../support/gateway-rig.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

/** The test fetches the agent's package as a host does: with curl, the hub's CA file, and the enrollment token in a header. */
let rig: GatewayRig;
let folder: string;
const member = (name: string, bytes: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(`${name.padEnd(16)}${"0".padEnd(12)}${"0".padEnd(6)}${"0".padEnd(6)}${"100644".padEnd(8)}`),
    Buffer.from(`${String(bytes.length).padEnd(10)}\`\n`),
    bytes,
    Buffer.alloc(bytes.length % 2, "\n"),
  ]);
/** Builds a Debian package with only the parts that the hub checks. */
const packageOf = (bytes: number): Buffer =>
  Buffer.concat([
    Buffer.from("!<arch>\n"),
    member("debian-binary", Buffer.from("2.0\n")),
    member("control.tar.xz", randomBytes(333)),
    member("data.tar.xz", randomBytes(bytes)),
  ]);
const bytesOf = { old: packageOf(2_001), new: packageOf(3_000_000), arm: packageOf(1_000) };
const sumOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const put = (name: string, bytes: Buffer): void => writeFileSync(join(folder, name), bytes);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "muster-agent-packages-"));
  rig = await GatewayRig.start({
    packages: new AgentPackages(folder, quietLog),
    bootstrapScript: () => Promise.resolve("#!/bin/sh\n"),
  });
  writeFileSync(join(folder, "ca.pem"), rig.ca.caPem);
});
afterAll(async () => {
  await rig.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function fetchAs(token: string | null, sha256: string) {
  const url = agentPackageUrl(`https://localhost:${rig.listener.port}/`, sha256);
  const file = join(folder, "answer");
  writeFileSync(join(folder, "header"), token === null ? "X-None: 1\n" : `Authorization: Bearer ${token}\n`);
  const { stdout } = await execa(
    "curl",
    ["--silent", "--show-error", "--cacert", join(folder, "ca.pem")].concat([
      "--header",
      `@${join(folder, "header")}`,
      "--output",
      file,
      "--write-out",
      "%{http_code}",
      url,
    ]),
  );
  const body = readFileSync(file);
  const code = stdout === "200" ? null : (JSON.parse(body.toString("utf8")) as { code: string }).code;
  return { status: Number(stdout), body, code };
}

it("serves a package by its checksum to a host with a token, the newest and an older one", async () => {
  put("muster-agent_0.9.9_amd64.deb", bytesOf.old);
  put("muster-agent_0.10.0_amd64.deb", bytesOf.new);
  put("muster-agent_0.10.0_arm64.deb", bytesOf.arm);
  put("notes.txt", bytesOf.arm);
  const packages = new AgentPackages(folder, quietLog);
  expect(await packages.newest("amd64")).toMatchObject({ version: "0.10.0", sha256: sumOf(bytesOf.new) });
  expect(await packages.newest("arm64")).toMatchObject({ sha256: sumOf(bytesOf.arm) });
  expect(await packages.newest("riscv64")).toBeNull();
  const token = await rig.issueToken(await rig.addNode());
  for (const bytes of [bytesOf.new, bytesOf.old]) {
    const answer = await fetchAs(token, sumOf(bytes));
    expect(answer.status).toBe(200);
    expect(answer.body.equals(bytes)).toBe(true);
  }
  // A download of the agent's package does not use up the one-time enrollment token.
  const [row] = await rig.db
    .select()
    .from(enrollmentTokens)
    .where(eq(enrollmentTokens.tokenSha256, tokenHash(token)));
  expect(row?.usedAt).toBeNull();
});

it("refuses a request without a valid token", async () => {
  put("muster-agent_0.10.0_amd64.deb", bytesOf.new);
  const sum = sumOf(bytesOf.new);
  const nodeId = await rig.addNode();
  const expired = await rig.issueToken(nodeId, { ttlSeconds: 0 });
  expect(await fetchAs(expired, sum)).toMatchObject({ code: "token_expired" });
  const revoked = await rig.issueToken(nodeId);
  await rig.db.update(enrollmentTokens).set({ revokedAt: new Date() }).where(eq(enrollmentTokens.nodeId, nodeId));
  for (const token of [revoked, null, "not-a-token", "x".repeat(500)]) {
    expect(await fetchAs(token, sum)).toMatchObject({ code: "token_unknown" });
  }
});

it("serves only packages, and only by checksum", async () => {
  put("muster-agent_0.10.0_amd64.deb", bytesOf.new);
  const token = await rig.issueToken(await rig.addNode());
  for (const path of [
    "0".repeat(64),
    sumOf(readFileSync(join(folder, "ca.pem"))),
    "..%2fca.pem",
    "muster-agent_0.10.0_amd64.deb",
  ]) {
    expect(await fetchAs(token, path)).toMatchObject({ status: 404, code: "not_found" });
  }
});

it("does not serve a package under its old checksum after its bytes changed", async () => {
  put("muster-agent_0.10.0_amd64.deb", bytesOf.new);
  const token = await rig.issueToken(await rig.addNode());
  const sum = sumOf(bytesOf.new);
  expect((await fetchAs(token, sum)).status).toBe(200);
  put("muster-agent_0.10.0_amd64.deb", packageOf(3_000_000));
  expect(await fetchAs(token, sum)).toMatchObject({ status: 404 });
});

it("offers the previous package until the last byte of a new one is copied", async () => {
  const own = mkdtempSync(join(tmpdir(), "muster-agent-copying-"));
  try {
    const packages = new AgentPackages(own, quietLog);
    writeFileSync(join(own, "muster-agent_0.9.9_amd64.deb"), bytesOf.old);
    for (const written of [0, 8, 60, 500, 1_000_000, bytesOf.new.length - 1]) {
      const part = bytesOf.new.subarray(0, written);
      writeFileSync(join(own, "muster-agent_0.10.0_amd64.deb"), part);
      expect(await packages.newest("amd64")).toMatchObject({ version: "0.9.9" });
      expect(await packages.withSum(sumOf(part))).toBeNull();
    }
    writeFileSync(join(own, "muster-agent_0.10.0_amd64.deb"), bytesOf.new);
    expect(await packages.newest("amd64")).toMatchObject({ version: "0.10.0", sha256: sumOf(bytesOf.new) });
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
});

it("accepts a package that dpkg-deb built", async () => {
  const own = mkdtempSync(join(tmpdir(), "muster-agent-built-"));
  try {
    mkdirSync(join(own, "pack/DEBIAN"), { recursive: true });
    const control = "Package: muster-agent\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@t>\nDescription: t\n";
    writeFileSync(join(own, "pack/DEBIAN/control"), control);
    await execa("dpkg-deb", ["--build", join(own, "pack"), join(own, "muster-agent_1.0_all.deb")]);
    expect(await new AgentPackages(own, quietLog).newest("all")).toMatchObject({ version: "1.0" });
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
});

/** Lists the files in the folder with agent packages that the test's process holds open, in which the hub also runs. */
const openFiles = (): string[] =>
  readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const file = readlinkSync(join("/proc/self/fd", fd));
      return file.startsWith(folder) ? [file] : [];
    } catch {
      return [];
    }
  });

it("answers HEAD as GET without a body, and leaves no file open", async () => {
  put("muster-agent_0.10.0_amd64.deb", bytesOf.new);
  const token = await rig.issueToken(await rig.addNode());
  const path = new URL(agentPackageUrl("https://hub", sumOf(bytesOf.new))).pathname;
  for (let asked = 0; asked < 20; asked += 1) {
    const answer = await rig.ask("HEAD", path, { headers: { authorization: `Bearer ${token}` } });
    expect(answer).toMatchObject({ status: 200, text: "", type: "application/vnd.debian.binary-package" });
  }
  expect(openFiles()).toEqual([]);
});

it("cuts off a client that reads too slowly, and closes the file", async () => {
  const large = packageOf(64 * 2 ** 20);
  put("muster-agent_0.11.0_amd64.deb", large);
  const token = await rig.issueToken(await rig.addNode());
  const hub = await rig.secondHub({ packages: new AgentPackages(folder, quietLog), packageWithinMs: 500 });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(
      agentPackageUrl(`https://localhost:${hub.port}`, sumOf(large)),
      { ca: rig.ca.caPem, agent: false, headers: { authorization: `Bearer ${token}` } },
      resolve,
    ).once("error", reject);
  });
  // The HTTP client reads nothing of the hub's answer, which is larger than all buffers between hub and client.
  const ended = new Promise((resolve) => {
    response.once("error", resolve).once("end", () => resolve(null));
  });
  await until("the file to be closed", () => (openFiles().length === 0 ? true : undefined));
  response.resume();
  expect(await ended).toMatchObject({ code: "ECONNRESET" });
});

it("serves a package often enough for a first boot that is retried, and limits endless downloads", async () => {
  put("muster-agent_0.9.9_amd64.deb", bytesOf.old);
  const nodeId = await rig.addNode();
  const headers = { authorization: `Bearer ${await rig.issueToken(nodeId)}` };
  const path = `${PACKAGES_PATH}/${sumOf(bytesOf.old)}`;
  const { burst } = NODE_RATES.download;
  const statuses: number[] = [];
  for (let n = 0; n < burst; n += 1) statuses.push((await rig.ask("HEAD", path, { headers })).status);
  expect(new Set(statuses)).toEqual(new Set([200]));
  const late: Answer[] = [];
  // One rate limit covers the bootstrap script and the agent's package, and the rate limit may have refilled a little.
  for (let n = 0; n < burst; n += 1)
    late.push(await rig.ask("GET", n % 2 === 0 ? path : BOOTSTRAP_SCRIPT_PATH, { headers }));
  const refused = late.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThan(burst / 2);
  expect(refused[0]).toMatchObject({ code: "rate_limited", retryAfter: expect.stringMatching(/^[1-9]\d*$/) });
  expect(late.filter(({ status }) => ![200, 429].includes(status))).toEqual([]);
  const other = { authorization: `Bearer ${await rig.issueToken(await rig.addNode())}` };
  expect((await rig.ask("HEAD", path, { headers: other })).status).toBe(200);
});
