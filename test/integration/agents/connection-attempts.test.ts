import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { execa } from "execa";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { keepConnectionAttempts, listConnectionAttempts } from "../../../hub/db/queries/connection-attempts.ts";
import { type AttemptKind, connectionAttempts } from "../../../hub/db/schema/index.ts";
import { TestAuthority } from "../../fakes/hub/authority.ts";
import { GatewayRig, makeKey } from "../../support/gateway-rig.ts";
import { until } from "../../support/until.ts";

const curl = spawnSync("curl", ["--version"]).error === undefined;
if (!curl) process.stderr.write("SKIPPED: curl is not installed (Debian package curl)\n");
let rig: GatewayRig;
let folder: string;
let otherCa: string;
beforeAll(async () => {
  rig = await GatewayRig.start();
  folder = mkdtempSync(join(tmpdir(), "muster-attempts-"));
  otherCa = (await TestAuthority.make()).caPem;
  writeFileSync(join(folder, "other.pem"), otherCa);
});
afterAll(async () => {
  await rig?.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  await rig.db.delete(connectionAttempts);
});

const seen = (kind: AttemptKind, count = 1) =>
  until(`${count} of ${kind}`, async () => {
    const [row] = await rig.db.select().from(connectionAttempts).where(eq(connectionAttempts.kind, kind));
    return row !== undefined && row.count >= count ? row : undefined;
  });
const distrust = (port: number) =>
  execa("curl", ["-sS", "--cacert", join(folder, "other.pem"), `https://127.0.0.1:${port}/healthz`], { reject: false });

describe("the record of clients without a certificate at the agent listener", () => {
  it.skipIf(!curl)("contains a client that does not trust the CA, from every hub", async () => {
    const second = await rig.secondHub();
    expect((await distrust(rig.listener.port)).exitCode).toBe(60);
    await distrust(second.port);
    expect(await seen("certificate_untrusted", 2)).toMatchObject({
      address: "127.0.0.1",
      nodeId: null,
      detail: expect.stringContaining("UNKNOWN_CA"),
      count: 2,
    });
  });

  it("contains a client that closes during the handshake without an alert, as Node does when it has no trust", async () => {
    const refused = new Promise((_resolve, reject) => {
      connect({ host: "127.0.0.1", port: rig.listener.port, ca: otherCa }).once("error", reject);
    });
    await expect(refused).rejects.toThrow();
    expect(await seen("handshake_failed")).toMatchObject({ address: "127.0.0.1" });
  });

  it("contains a refused token, with its node if the token is known", async () => {
    const nodeId = await rig.addNode();
    const expired = await rig.issueToken(nodeId, { ttlSeconds: -1 });
    await rig.enroll(await rig.enrollRequest(nodeId, expired, await makeKey()));
    expect(await seen("enrollment_refused")).toMatchObject({ nodeId, detail: "token_expired" });
    const headers = { authorization: `Bearer ${expired}` };
    await rig.ask("GET", `/internal/v1/agent-packages/${"0".repeat(64)}`, { headers });
    await seen("enrollment_refused", 2);
    await rig.enroll(await rig.enrollRequest(nodeId, "x".repeat(43), await makeKey()));
    await until("the unknown token", async () => {
      const rows = await rig.db.select().from(connectionAttempts);
      return rows.find((row) => row.detail === "token_unknown" && row.nodeId === null);
    });
    expect(JSON.stringify(await rig.db.select().from(connectionAttempts))).not.toContain(expired);
  });

  it("contains an answered request, but none from an agent with its certificate", async () => {
    const identity = await rig.enrolled();
    const before = await seen("asked");
    await rig.ask("GET", `/internal/v1/nodes/${identity.nodeId}/tasks/wait?session_epoch=1`, { as: identity });
    await rig.ask("GET", "/healthz");
    expect(await seen("asked", before.count + 1)).toMatchObject({ count: before.count + 1, detail: "200" });
  });
});

describe("the stored connection attempts", () => {
  const note = (address: string, more: object = {}) => ({
    address,
    kind: "asked" as const,
    detail: "200",
    tokenSha256: null,
    count: 1,
    ...more,
  });

  it("have a limit over all addresses", async () => {
    for (let batch = 0; batch < 6; batch += 1)
      await keepConnectionAttempts(
        rig.db,
        Array.from({ length: 1_000 }, (_, n) => note(`2001:db8::${batch}:${n}`)),
      );
    expect(await rig.db.$count(connectionAttempts)).toBeLessThanOrEqual(5_000);
  });

  it("are counted anew after a pause, because another host may have the address", async () => {
    await keepConnectionAttempts(rig.db, [note("10.0.0.1", { count: 300 })]);
    await rig.db.update(connectionAttempts).set({ lastAt: sql`now() - interval '2 hours'` });
    await keepConnectionAttempts(rig.db, [note("10.0.0.1"), note("10.0.0.1", { tokenSha256: "f", count: 2 })]);
    const nodeId = await rig.addNode();
    const since = new Date(Date.now() - 60_000);
    expect(await listConnectionAttempts(rig.db, { addresses: ["10.0.0.1"], nodeId, since })).toMatchObject([
      { count: 3 },
    ]);
    expect(await listConnectionAttempts(rig.db, { addresses: [], nodeId, since })).toEqual([]);
  });
});
