import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { execa } from "execa";
import { afterAll, beforeAll, expect, it } from "vitest";
import { enrollmentTokens } from "../../hub/db/schema/index.ts";
import { agentPackageUrl } from "../../hub/gateway/agent-package-route.ts";
import { AgentPackages } from "../../hub/gateway/agent-packages.ts";
import { tokenHash } from "../../hub/node/enrollment-tokens.ts";
import { GatewayRig } from "../support/gateway-rig.ts";
import { quietLog } from "../support/log.ts";

/** Hosts fetch the agent with curl, and so does this test: certificate, header and all. */
let rig: GatewayRig;
let folder: string;
const bytesOf = { old: randomBytes(2_000), new: randomBytes(3_000_000), arm: randomBytes(1_000) };
const sumOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const put = (name: string, bytes: Buffer): void => writeFileSync(join(folder, name), bytes);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "muster-agent-packages-"));
  rig = await GatewayRig.start({ packages: new AgentPackages(folder, quietLog) });
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

it("gives a host with a token the package of the checksum it was told, the newest and one of before an upgrade", async () => {
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
  // Asking for it does not use the token up.
  const [row] = await rig.db
    .select()
    .from(enrollmentTokens)
    .where(eq(enrollmentTokens.tokenSha256, tokenHash(token)));
  expect(row?.usedAt).toBeNull();
});

it("refuses whoever has no token that is good now", async () => {
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

it("gives nothing out but packages, by their checksum alone", async () => {
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

it("no longer knows a package whose bytes were changed, under the checksum that hosts were told", async () => {
  put("muster-agent_0.10.0_amd64.deb", bytesOf.new);
  const token = await rig.issueToken(await rig.addNode());
  const sum = sumOf(bytesOf.new);
  expect((await fetchAs(token, sum)).status).toBe(200);
  put("muster-agent_0.10.0_amd64.deb", Buffer.concat([bytesOf.new, Buffer.from("x")]));
  expect(await fetchAs(token, sum)).toMatchObject({ status: 404 });
});
