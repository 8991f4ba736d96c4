import { X509Certificate } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, desc, eq, isNull, sql } from "../../../hub/db/orm.ts";
import { beginUse } from "../../../hub/db/queries/node-certificates.ts";
import { agentSessions, domainEvents, nodeCertificates, nodeEvents } from "../../../hub/db/schema/index.ts";
import { serialOf } from "../../../hub/gateway/x509.ts";
import { CLONE_EVIDENCE, type CloneEvidence } from "../../../shared/identity.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { AGENT_COMES_BACK, CLOSE_CODES } from "../../../shared/protocol/version.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { GatewayRig, type Identity, makeKey } from "../../support/gateway-rig.ts";
import { hostRows } from "../../support/host-rows.ts";
import { keptAgents } from "../../support/kept-agents.ts";
import { helloOf, SocketAgent } from "../../support/socket-agent.ts";
import { until } from "../../support/until.ts";

let api: ApiHarness;
let rig: GatewayRig;
beforeAll(async () => {
  api = await startApi();
  rig = await GatewayRig.start({}, api.database);
});
afterAll(async () => {
  await rig.listener.close();
  await api.close();
});

const kept = keptAgents(() => rig);
const connect = (identity: Identity, boot_id = "boot-1", route: { port?: number; from?: string } = {}) =>
  kept.connect(identity, { hello: { boot_id }, ...route });
const refusal = (identity: Identity, from = "127.0.0.1") =>
  SocketAgent.open(rig, identity, { from }).then(() => "accepted", String);
const { statusOf, conditionOf } = hostRows(() => rig.db);
const alarms = (id: NodeId) =>
  rig.db
    .select()
    .from(nodeEvents)
    .where(and(eq(nodeEvents.nodeId, id), eq(nodeEvents.type, "duplicate_identity")));
const live = (id: NodeId) =>
  rig.db
    .select()
    .from(nodeCertificates)
    .where(
      and(eq(nodeCertificates.nodeId, id), isNull(nodeCertificates.revokedAt), isNull(nodeCertificates.replacedAt)),
    );
/** Moves the first use of a replaced certificate into the past. */
const seenBefore = (id: NodeId, seconds: number) =>
  rig.db
    .update(nodeCertificates)
    .set({ replacedSeenAt: sql`now() - make_interval(secs => ${seconds})` })
    .where(and(eq(nodeCertificates.nodeId, id), sql`replaced_seen_at is not null`));

async function expectBlocked(id: NodeId, evidence: CloneEvidence): Promise<void> {
  await until("the node is quarantined", async () => ((await statusOf(id)) === "quarantined" ? true : undefined));
  expect(await live(id)).toEqual([]);
  expect(await alarms(id)).toMatchObject([{ details: { evidence }, message: expect.stringContaining("re-enroll") }]);
  expect(await conditionOf(id, "agent.identity")).toMatchObject({ status: "False", reason: "TwoUsers" });
  const [event] = await rig.db
    .select()
    .from(domainEvents)
    .where(eq(domainEvents.type, "node.identity.barred"))
    .orderBy(desc(domainEvents.seq))
    .limit(1);
  expect(event?.data).toMatchObject({ node_id: id, evidence, quarantined: true });
}

async function blocked(): Promise<Identity> {
  const identity = await rig.enrolled();
  await connect(await rig.renew(identity, await makeKey()));
  await rig.renew(identity, await makeKey());
  await expectBlocked(identity.nodeId, "second_key");
  return identity;
}
const path = (id: NodeId) => `/api/v1/admin/nodes/${id}/re-enroll`;
const liftPath = (id: NodeId) => `/api/v1/admin/nodes/${id}/lift-quarantine`;
/** Enrolls a new agent for the node with the bootstrap command from the API, without connecting the agent. */
async function enrolledAnew(nodeId: NodeId, reason = "copy found and ended"): Promise<Identity> {
  const answer = await api.ask("POST", path(nodeId), { reason });
  expect(answer.status).toBe(201);
  const key = await makeKey();
  const token = /Bearer %s" ([\w-]+)\)/.exec(answer.body.bootstrap_command)?.[1] ?? "";
  const enrolled = await rig.enroll(await rig.enrollRequest(nodeId, token, key));
  const { certificate_pem: certPem, generation } = enrolled.json as { certificate_pem: string; generation: number };
  return { nodeId, generation, certPem, keyPem: key.keyPem };
}

describe("a renewal", () => {
  it("ends the old certificate at the first use of the new one, because the answer may have been lost", async () => {
    const first = await rig.enrolled();
    const key = await makeKey();
    const lost = await rig.renew(first, key);
    const old = await connect(first);
    const second = await rig.renew(first, key);
    expect(second.certPem).toBe(lost.certPem);
    expect(await live(first.nodeId)).toHaveLength(2);
    await connect(second);
    expect([CLOSE_CODES.superseded.code, CLOSE_CODES.certificate_replaced.code]).toContain((await old.closing()).code);
    expect(await live(first.nodeId)).toHaveLength(1);
    expect(await refusal(first)).toContain("HTTP 403 certificate_replaced");
    expect((await rig.renew(first, key)).answer).toMatchObject({ status: 403, code: "certificate_replaced" });
    expect(await alarms(first.nodeId)).toEqual([]);
  });

  it("that starts from an unused certificate counts as its use and ends the one before it", async () => {
    const first = await rig.enrolled();
    const session = await connect(first);
    const second = await rig.renew(first, await makeKey());
    const third = await rig.renew(second, await makeKey());
    expect((await session.closing()).code).toBe(CLOSE_CODES.certificate_replaced.code);
    await connect(third);
    expect(await live(first.nodeId)).toHaveLength(1);
  });

  it("survives a delayed request with the certificate before it", async () => {
    const first = await rig.enrolled();
    const second = await rig.renew(first, await makeKey());
    const serial = serialOf(new X509Certificate(first.certPem).serialNumber);
    expect(await rig.inTx((tx) => beginUse(tx, first.nodeId, first.generation, serial))).toBe(true);
    expect(await live(first.nodeId)).toHaveLength(2);
    await connect(second);
  });

  it("is repeatable for an agent that keeps its old certificate, with at most one unused certificate", async () => {
    const first = await rig.enrolled();
    const [one, two] = [await makeKey(), await makeKey()];
    const given = await rig.renew(first, one);
    await rig.renew(first, two);
    expect(await live(first.nodeId)).toHaveLength(2);
    expect(await refusal(given)).toContain("certificate_replaced");
    await connect(first);
    expect(await statusOf(first.nodeId)).toBe("active");
  });
});

describe("a session", () => {
  it("ends when its certificate expires, and the node stays connected", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    await rig.db
      .update(nodeCertificates)
      .set({ notAfter: sql`now()` })
      .where(eq(nodeCertificates.nodeId, identity.nodeId));
    expect((await agent.closing()).code).toBe(CLOSE_CODES.certificate_expired.code);
    const again = await connect(identity);
    // The hub stores the end of an agent's first session before it answers a frame of the second session.
    await again.settled();
    expect(await conditionOf(identity.nodeId, "agent.connected")).toMatchObject({ status: "True" });
  });

  it("that the agent closes in order to reconnect leaves the node connected", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    const before = await conditionOf(identity.nodeId, "agent.connected");
    await agent.close(AGENT_COMES_BACK);
    const other = await rig.enrolled();
    const gone = await connect(other);
    await gone.close();
    await until("an end is written", async () =>
      (await conditionOf(other.nodeId, "agent.connected"))?.status === "False" ? true : undefined,
    );
    expect(await conditionOf(identity.nodeId, "agent.connected")).toEqual(before);
    const [session] = await rig.db.select().from(agentSessions).where(eq(agentSessions.nodeId, identity.nodeId));
    expect(session?.state).toBe("open");
  });
});

describe("two users of one identity are detected and blocked", () => {
  it("when a thief renews with a new key and connects beside the host", async () => {
    const identity = await rig.enrolled();
    const host = await connect(identity);
    const stolen = await rig.renew(identity, await makeKey());
    const thief = await connect(stolen, "boot-of-thief");
    await host.closing();
    await rig.renew(identity, await makeKey());
    await expectBlocked(identity.nodeId, expect.stringMatching(/two_boots_at_once|second_key/));
    expect((await thief.closing()).code).toBe(CLOSE_CODES.identity_revoked.code);
    expect(await refusal(identity)).toContain("HTTP 403 certificate_barred");
    expect(await refusal(stolen)).toContain("HTTP 403 certificate_barred");
    expect((await rig.renew(stolen, await makeKey())).answer.text).toContain("re-enroll-node");
  });

  it("when a thief imitates the host with another key, at the host's next renewal", async () => {
    const identity = await rig.enrolled();
    const stolen = await rig.renew(identity, await makeKey());
    await connect(stolen);
    expect((await rig.renew(identity, await makeKey())).answer).toMatchObject({ code: "certificate_barred" });
    await expectBlocked(identity.nodeId, "second_key");
  });

  it("when a replaced certificate is still used a minute later", async () => {
    const identity = await rig.enrolled();
    await connect(await rig.renew(identity, await makeKey()));
    expect(await refusal(identity)).toContain("certificate_replaced");
    expect(await refusal(identity)).toContain("certificate_replaced");
    expect(await alarms(identity.nodeId)).toEqual([]);
    await seenBefore(identity.nodeId, 61);
    expect(await refusal(identity)).toContain("certificate_barred");
    await expectBlocked(identity.nodeId, "replaced_certificate");
  });

  it("when two boots connect in turn without meeting", async () => {
    const identity = await rig.enrolled();
    for (const boot of ["a", "b"]) await (await connect(identity, boot)).close();
    const returned = await connect(identity, "a");
    expect(await alarms(identity.nodeId)).toEqual([]);
    returned.send({ type: "heartbeat", seq: 1 });
    await expectBlocked(identity.nodeId, "boots_alternate");
  });

  it("when two boots are connected at once on different hubs", async () => {
    const identity = await rig.enrolled();
    const second = await rig.secondHub();
    await connect(identity, "a");
    await connect(identity, "b", { port: second.port });
    await expectBlocked(identity.nodeId, "two_boots_at_once");
    await second.close();
  });

  it("when one boot has sessions at two addresses at once, until the node is enrolled again", async () => {
    const identity = await rig.enrolled();
    const host = await connect(identity, "boot-1", { from: "127.0.0.1" });
    const copy = await connect(identity, "boot-1", { from: "127.0.0.2" });
    expect((await host.closing()).code).toBe(CLOSE_CODES.superseded.code);
    await expectBlocked(identity.nodeId, "two_addresses_at_once");
    expect((await copy.closing()).code).toBe(CLOSE_CODES.identity_revoked.code);
    for (const from of ["127.0.0.1", "127.0.0.2"])
      expect(await refusal(identity, from)).toContain("HTTP 403 certificate_barred");
    const [alarm] = await alarms(identity.nodeId);
    expect(alarm?.details).toMatchObject({ addresses: ["127.0.0.1", "127.0.0.2"] });
    const shown = (await api.ask("GET", `/api/v1/admin/nodes/${identity.nodeId}`)).body;
    expect(shown).toMatchObject({ status: "quarantined", schedulable: false });
    expect(shown.conditions).toContainEqual(
      expect.objectContaining({
        type: "agent.identity",
        status: "False",
        message: expect.stringContaining(CLONE_EVIDENCE.two_addresses_at_once),
      }),
    );
    const anew = await enrolledAnew(identity.nodeId);
    await connect(anew, "boot-1", { from: "127.0.0.2" });
    expect(await statusOf(identity.nodeId)).toBe("active");
    expect(await refusal(identity)).toContain("HTTP 403");
  });

  it("when live sessions of one boot and address displace each other twice", async () => {
    const identity = await rig.enrolled();
    const first = await connect(identity);
    const second = await connect(identity);
    await first.closing();
    await until("the first displacement is noted", async () => {
      const [row] = await rig.db.select().from(agentSessions).where(eq(agentSessions.nodeId, identity.nodeId));
      return row?.displacedAt ?? undefined;
    });
    expect(await alarms(identity.nodeId)).toEqual([]);
    await connect(identity);
    await second.closing();
    await expectBlocked(identity.nodeId, "sessions_displace_each_other");
  });
});

describe("one host is not mistaken for two", () => {
  it("when it reboots, its old connection hangs, and it changes hub and channel", async () => {
    const identity = await rig.enrolled();
    const second = await rig.secondHub();
    for (const boot of ["a", "b", "c"])
      for (const port of [rig.listener.port, second.port]) {
        const agent = await connect(identity, boot, { port });
        agent.send({ type: "heartbeat", seq: 1 });
        await agent.settled();
        agent.cut();
        const body = { hello: helloOf(identity, { boot_id: boot }) };
        const path = `/internal/v1/nodes/${identity.nodeId}/sessions`;
        expect((await rig.ask("POST", path, { as: identity, body, port })).status).toBe(200);
      }
    await second.close();
    expect(await alarms(identity.nodeId)).toEqual([]);
    expect(await statusOf(identity.nodeId)).toBe("active");
  });

  it("when one hub reports its IPv4 address in IPv6 notation", async () => {
    const { port } = await rig.secondHub({ host: "::ffff:127.0.0.1" });
    const identity = await rig.enrolled();
    const sessionOf = async () =>
      (await rig.db.select().from(agentSessions).where(eq(agentSessions.nodeId, identity.nodeId)))[0];
    const first = await connect(identity);
    await connect(identity, "boot-1", { port });
    await first.closing();
    await until("the displacement is noted", async () => (await sessionOf())?.displacedAt ?? undefined);
    expect((await sessionOf())?.remoteAddress).toBe("127.0.0.1");
    expect(await alarms(identity.nodeId)).toEqual([]);
  });

  it("when a hello of an earlier boot is read late", async () => {
    const identity = await rig.enrolled();
    await (await connect(identity, "a")).close();
    await (await connect(identity, "b")).close();
    await (await connect(identity, "a")).close();
    const now = await connect(identity, "b");
    now.cut();
    await (await connect(identity, "c")).settled();
    expect(await alarms(identity.nodeId)).toEqual([]);
  });
});

describe("a node whose identity is blocked", () => {
  it("is enrolled again only by an operator's command, and active once the new agent connects", async () => {
    const { nodeId } = await blocked();
    const anew = await enrolledAnew(nodeId);
    expect(await statusOf(nodeId)).toBe("quarantined");
    await connect(anew);
    expect(await statusOf(nodeId)).toBe("active");
    expect(await conditionOf(nodeId, "agent.identity")).toMatchObject({ status: "True", generation: anew.generation });
    const audit = await rig.db.execute(
      sql`select reason from audit_logs where action = 'reEnrollNode' and target = ${`nodes/${nodeId}`}`,
    );
    expect(audit.rows).toEqual([{ reason: "copy found and ended" }]);
    const events = await rig.db.select().from(domainEvents).where(eq(domainEvents.type, "node.identity.restored"));
    expect(events.map((event) => event.subject)).toContain(`nodes/${nodeId}`);
  });

  it("that a person also quarantined stays quarantined after re-enrollment, in either order", async () => {
    const quarantine = (id: NodeId) => api.ask("POST", `/api/v1/admin/nodes/${id}/quarantine`, { reason: "looking" });
    const later = (await blocked()).nodeId;
    expect((await quarantine(later)).status).toBe(200);
    const earlier = await rig.enrolled();
    expect((await quarantine(earlier.nodeId)).status).toBe(200);
    await connect(await rig.renew(earlier, await makeKey()));
    await rig.renew(earlier, await makeKey());
    await until("it is blocked too", async () => ((await alarms(earlier.nodeId)).length > 0 ? true : undefined));
    for (const id of [later, earlier.nodeId]) {
      expect((await api.ask("POST", liftPath(id), { reason: "looked" })).problem.detail).toContain(
        "certificates are invalid",
      );
      const agent = await connect(await enrolledAnew(id));
      await agent.settled();
      expect(await conditionOf(id, "agent.identity")).toMatchObject({ status: "True" });
      expect(await statusOf(id)).toBe("quarantined");
      expect((await api.ask("POST", liftPath(id), { reason: "looked" })).body).toMatchObject({ status: "active" });
    }
  });

  it("whose quarantine a person lifted and set again is not returned to service by a connection", async () => {
    const { nodeId } = await blocked();
    const anew = await enrolledAnew(nodeId);
    expect((await api.ask("POST", liftPath(nodeId), { reason: "it is the right one" })).status).toBe(200);
    expect((await api.ask("POST", `/api/v1/admin/nodes/${nodeId}/quarantine`, { reason: "looking" })).status).toBe(200);
    await (await connect(anew)).settled();
    expect(await statusOf(nodeId)).toBe("quarantined");
  });

  it("gets no certificate with its old tokens", async () => {
    const nodeId = await rig.addNode("active");
    const token = await rig.issueToken(nodeId);
    const key = await makeKey();
    const request = await rig.enrollRequest(nodeId, token, key);
    const { certificate_pem: certPem } = (await rig.enroll(request)).json as { certificate_pem: string };
    const identity = { nodeId, generation: 1, certPem, keyPem: key.keyPem };
    await connect(await rig.renew(identity, await makeKey()));
    expect(await rig.enroll(request)).toMatchObject({ code: "token_used" });
    // The node also has an unused enrollment token of its present generation.
    const unused = await rig.enrollRequest(nodeId, await rig.issueToken(nodeId), await makeKey());
    await rig.renew(identity, await makeKey());
    expect(await rig.enroll(request)).toMatchObject({ code: "certificate_rejected" });
    expect(await rig.enroll(unused)).toMatchObject({ code: "token_unknown" });
  });

  it("is blocked again when its new identity has two users as well", async () => {
    const { nodeId } = await blocked();
    const anew = await enrolledAnew(nodeId);
    await connect(await rig.renew(anew, await makeKey()));
    expect(await statusOf(nodeId)).toBe("active");
    await rig.renew(anew, await makeKey());
    await until("it is quarantined again", async () => ((await statusOf(nodeId)) === "quarantined" ? true : undefined));
    expect(await live(nodeId)).toEqual([]);
    expect(await alarms(nodeId)).toHaveLength(2);
  });

  it("is not enrolled again while it is not in service, and an unknown node is not found", async () => {
    const nodeId = await rig.addNode("enrolling");
    expect((await api.ask("POST", path(nodeId), { reason: "r" })).problem.detail).toContain("restart-clean");
    const unknown = path("00000000-0000-4000-8000-000000000000" as NodeId);
    expect((await api.ask("POST", unknown, { reason: "r" })).status).toBe(404);
  });
});
