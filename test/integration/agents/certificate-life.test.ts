import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq, isNull } from "../../../hub/db/orm.ts";
import { agentSessions, nodeCertificates, nodeConditions, nodeEvents } from "../../../hub/db/schema/index.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { AgentHosts, hubOf, prepareHost } from "../../support/agent-hosts.ts";
import { GatewayRig, type Identity } from "../../support/gateway-rig.ts";
import { until } from "../../support/until.ts";

let rig: GatewayRig;
const hosts = new AgentHosts();
beforeAll(async () => {
  rig = await GatewayRig.start({ heartbeatMinTtlMs: 3_000 });
});
afterAll(async () => {
  await hosts.end();
  await rig?.stop();
});

function start({ nodeId, generation, certPem, keyPem }: Identity): { log(): string } {
  const host = hosts.add();
  prepareHost(host, hubOf(rig), { nodeId, generation });
  host.write("var/lib/muster/agent/key.pem", keyPem, 0o600);
  host.write("var/lib/muster/agent/certificate.pem", certPem);
  const said = { node_id: nodeId, generation, not_after: new Date().toISOString() };
  host.write("var/lib/muster/agent/identity.json", JSON.stringify(said));
  hosts.start(host);
  return { log: () => readFileSync(host.path("agent.log"), { encoding: "utf8", flag: "a+" }) };
}
const session = (nodeId: NodeId, epoch: number) =>
  until(`session ${epoch}`, async () => {
    const [row] = await rig.db.select().from(agentSessions).where(eq(agentSessions.nodeId, nodeId));
    return row !== undefined && row.sessionEpoch >= epoch && row.state === "open" ? row : undefined;
  });
const chain = (nodeId: NodeId) =>
  rig.db
    .select()
    .from(nodeCertificates)
    .where(and(eq(nodeCertificates.nodeId, nodeId), isNull(nodeCertificates.replacedAt)));

describe("an agent's certificate", () => {
  it("is renewed with its own key if it expired at most a week ago while the host was off", async () => {
    const identity = await rig.expired(await rig.enrolled(), 6 * 24);
    start(identity);
    await session(identity.nodeId, 1);
    const [only, ...others] = await chain(identity.nodeId);
    expect(others).toEqual([]);
    expect(only?.notAfter.getTime()).toBeGreaterThan(Date.now());
  });

  it("is not renewed if it expired longer ago, and the host's log says what to do", async () => {
    const identity = await rig.expired(await rig.enrolled(), 8 * 24);
    const agent = start(identity);
    await until("the agent's own word", () => (agent.log().includes("re-enroll-node") ? true : undefined));
    expect(agent.log()).toContain("too long ago to be renewed");
  });

  it("is renewed in time, and the node stays connected during the change", async () => {
    // Three quarters of the life of the agent's certificate have passed, because the certificate ends in six hours.
    const identity = await rig.expired(await rig.enrolled(), -6);
    const watched: (string | undefined)[] = [];
    start(identity);
    await session(identity.nodeId, 1);
    await until("the session of the new certificate", async () => {
      const [row] = await rig.db
        .select()
        .from(nodeConditions)
        .where(and(eq(nodeConditions.nodeId, identity.nodeId), eq(nodeConditions.type, "agent.connected")));
      watched.push(row?.status);
      const [now] = await rig.db.select().from(agentSessions).where(eq(agentSessions.nodeId, identity.nodeId));
      return now?.sessionEpoch === 2 ? true : undefined;
    });
    expect(new Set(watched)).toEqual(new Set(["True"]));
    expect(await chain(identity.nodeId)).toHaveLength(1);
    const events = await rig.db.select().from(nodeEvents).where(eq(nodeEvents.nodeId, identity.nodeId));
    expect(events.map((event) => event.type).toSorted()).toEqual(["certificate_renewed", "enrolled", "session_opened"]);
  });
});
