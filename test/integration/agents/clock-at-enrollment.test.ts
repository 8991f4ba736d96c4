import { existsSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq } from "../../../hub/db/orm.ts";
import { connectionAttempts, nodeConditions } from "../../../hub/db/schema/index.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { AgentHosts, hubOf, prepareHost } from "../../support/agent-hosts.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";
import { until } from "../../support/until.ts";

/** The library libfaketime (Debian package faketime) gives a process a clock that a test can set. */
const PRELOAD = [
  `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu/faketime/libfaketime.so.1`,
].find(existsSync);
if (PRELOAD === undefined) process.stderr.write("SKIPPED: libfaketime is not installed (Debian package faketime)\n");

let rig: GatewayRig;
const hosts = new AgentHosts();
beforeAll(async () => {
  rig = await GatewayRig.start({ heartbeatMinTtlMs: 3_000 });
});
afterAll(async () => {
  await hosts.end();
  await rig?.stop();
});

async function boot(offset: string): Promise<{ nodeId: NodeId; log(): string; setClock(): void }> {
  const nodeId = await rig.addNode();
  const host = hosts.add();
  // While a part of the first boot runs, the agent reads the host's state every two seconds.
  const part = { part: "50-roce-routing", owner: "muster", started_at: new Date().toISOString(), ended_at: null };
  host.write(
    "var/lib/muster/bootstrap/50-roce-routing.status",
    JSON.stringify({ ...part, exit_code: null, message: "running" }),
  );
  writeFileSync(host.path("clock"), `${offset}\n`);
  prepareHost(host, hubOf(rig), { nodeId, token: await rig.issueToken(nodeId) });
  hosts.start(host, {
    LD_PRELOAD: PRELOAD ?? "",
    FAKETIME_TIMESTAMP_FILE: host.path("clock"),
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  });
  return {
    nodeId,
    log: () => host.read("agent.log"),
    setClock: () => writeFileSync(host.path("clock"), "+0\n"),
  };
}
const health = (nodeId: NodeId, status: "True" | "False") =>
  until(`the agent to say ${status} of its health`, async () => {
    const [said] = await rig.db
      .select()
      .from(nodeConditions)
      .where(and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.type, "agent.healthy")));
    return said?.status === status ? said : undefined;
  });

describe.skipIf(PRELOAD === undefined)("a host whose clock is wrong before it enrolls", () => {
  it.each([
    ["an hour behind", "-3600", /clock is 3[56]\d\d s behind the hub's/],
    ["an hour ahead", "+3600", /clock is 3[56]\d\d s ahead of the hub's/],
    ["two days ahead, so that its new certificate seems to have expired", "+172800", /clock is 172\d\d\d s ahead/],
  ])(
    "enrolls with a clock that is %s, reports it, and becomes healthy once the clock is set",
    async (_what, offset, said) => {
      const host = await boot(offset);
      expect(await health(host.nodeId, "False")).toMatchObject({
        reason: "ClockSkewed",
        message: expect.stringMatching(said),
      });
      host.setClock();
      await health(host.nodeId, "True");
    },
  );

  it("logs why it cannot enroll with a clock days behind, and enrolls once the clock is set", async () => {
    const host = await boot("-259200");
    await until("the agent's own word", () =>
      host.log().includes("not valid yet. Check this host's clock") ? true : undefined,
    );
    await until("the hub to see it go away", async () => {
      const [row] = await rig.db
        .select()
        .from(connectionAttempts)
        .where(eq(connectionAttempts.kind, "handshake_failed"));
      return row;
    });
    host.setClock();
    await health(host.nodeId, "True");
  });
});
