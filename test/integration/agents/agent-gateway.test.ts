import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { revokeCertificates } from "../../../hub/db/queries/node-certificates.ts";
import { agentSessions, nodeCertificates, nodeInventories, nodes } from "../../../hub/db/schema/index.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { CLOSE_CODES, MAX_FRAME_BYTES } from "../../../shared/protocol/version.ts";
import type { ReadinessSignal } from "../../../shared/readiness.ts";
import { GatewayRig, type Identity } from "../../support/gateway-rig.ts";
import { hostRows } from "../../support/host-rows.ts";
import { keptAgents } from "../../support/kept-agents.ts";
import { helloOf, type SocketAgent } from "../../support/socket-agent.ts";
import { until } from "../../support/until.ts";

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.stop());

const { connect, open } = keptAgents(() => rig);
const { sessionOf, conditionOf, sessionState } = hostRows(() => rig.db);

describe("the hub refuses the upgrade and changes nothing for", () => {
  const expectRefused = async (identity: Parameters<typeof open>[0], problem: string) => {
    const before = await rig.snapshot();
    await expect(open(identity)).rejects.toThrow(problem);
    expect(await rig.snapshot()).toEqual(before);
  };

  it("a caller without a certificate", async () => {
    const { nodeId } = await rig.enrolled();
    await expectRefused({ nodeId }, "HTTP 401 certificate_required");
  });

  it("the certificate of another node", async () => {
    const [mine, other] = [await rig.enrolled(), await rig.enrolled()];
    await expectRefused({ ...other, nodeId: mine.nodeId }, "HTTP 403 certificate_rejected");
  });

  it("a certificate of another authority", async () => {
    const foreign = await (await GatewayRig.start()).stopAfter((rival) => rival.enrolled());
    const mine = await rig.enrolled();
    await expectRefused({ ...foreign, nodeId: mine.nodeId }, "HTTP 403 certificate_rejected");
  });

  it("a revoked certificate", async () => {
    const identity = await rig.enrolled();
    await rig.inTx((tx) => revokeCertificates(tx, identity.nodeId, "all", "stolen"));
    await expectRefused(identity, "HTTP 403 certificate_rejected");
  });

  it("an expired certificate", async () => {
    await expectRefused(await rig.expired(await rig.enrolled(), 1), "HTTP 403 certificate_rejected");
  });

  it("a certificate of the hub's CA for a key that the hub has not recorded", async () => {
    const identity = await rig.enrolled();
    await rig.db
      .update(nodeCertificates)
      .set({ publicKeySha256: "0".repeat(64) })
      .where(eq(nodeCertificates.nodeId, identity.nodeId));
    await expectRefused(identity, "HTTP 403 certificate_rejected");
  });

  it("the certificate of the system before a reimage", async () => {
    const identity = await rig.enrolled();
    await rig.issueToken(identity.nodeId, { generation: 2 });
    await expectRefused(identity, "HTTP 403 certificate_rejected");
  });

  it("a path that names no node", async () => {
    await expectRefused({ ...(await rig.enrolled()), nodeId: randomUUID() as NodeId }, "HTTP 403 certificate_rejected");
    await expectRefused({ ...(await rig.enrolled()), nodeId: "x/../y" as NodeId }, "HTTP 404 not_found");
  });
});

describe("before the welcome, the hub closes the connection and changes nothing for", () => {
  const expectClosed = async (identity: Identity, frame: unknown, code: number) => {
    const before = await rig.snapshot();
    const agent = await open(identity);
    agent.sendRaw(typeof frame === "string" ? frame : JSON.stringify(frame));
    expect((await agent.closing()).code).toBe(code);
    expect(await rig.snapshot()).toEqual(before);
  };

  it("a protocol version that the hub does not speak", async () => {
    const identity = await rig.enrolled();
    await expectClosed(identity, helloOf(identity, { protocol_version: 99 }), CLOSE_CODES.protocol_unsupported.code);
  });

  it("a hello for another node or generation", async () => {
    const [identity, other] = [await rig.enrolled(), await rig.enrolled()];
    await expectClosed(identity, helloOf(other), CLOSE_CODES.bad_frame.code);
    await expectClosed(identity, helloOf(identity, { generation: 7 }), CLOSE_CODES.bad_frame.code);
  });

  it("a first frame other than hello", async () => {
    await expectClosed(await rig.enrolled(), { type: "heartbeat", seq: 1 }, CLOSE_CODES.bad_frame.code);
  });

  it.each([
    ["that is not JSON", "hello"],
    ["of an unknown type", { type: "shell", command: "true" }],
    ["that nests too deeply", `{"type":"task.progress","progress":${"[".repeat(200_000)}${"]".repeat(200_000)}}`],
  ])("a frame %s", async (_what, frame) => {
    await expectClosed(await rig.enrolled(), frame, CLOSE_CODES.bad_frame.code);
  });

  it("a hello with a member that the protocol does not have", async () => {
    const identity = await rig.enrolled();
    await expectClosed(identity, { ...helloOf(identity), admin: true }, CLOSE_CODES.bad_frame.code);
  });

  it("a frame above the largest size", async () => {
    await expectClosed(await rig.enrolled(), `"${"x".repeat(MAX_FRAME_BYTES)}"`, 1009);
  });
});

describe("a session", () => {
  it("raises the epoch with each connect and sends the heartbeat's time to live", async () => {
    const identity = await rig.enrolled();
    const first = await open(identity);
    first.send(helloOf(identity));
    const welcome = await first.next("welcome");
    expect(welcome).toMatchObject({ protocol_version: 1, session_epoch: 1, hub_version: "test" });
    expect(welcome.heartbeat_ttl_ms).toBeGreaterThanOrEqual(60_000);
    expect(welcome.heartbeat_ttl_ms).toBeLessThanOrEqual(120_000);
    expect(await conditionOf(identity.nodeId, "agent.connected")).toMatchObject({ status: "True", source: "hub" });
    await first.close();
    expect(await sessionState(identity.nodeId, "closed")).toMatchObject({ sessionEpoch: 1 });
    expect(await conditionOf(identity.nodeId, "agent.connected")).toMatchObject({ status: "False" });
    await connect(identity);
    expect(await sessionOf(identity.nodeId)).toMatchObject({ sessionEpoch: 2, state: "open", channel: "websocket" });
  });

  it("is superseded by a newer session, and its end does not change the newer session's state", async () => {
    const identity = await rig.enrolled();
    const older = await connect(identity);
    await connect(identity);
    expect((await older.closing()).code).toBe(CLOSE_CODES.superseded.code);
    expect(await sessionOf(identity.nodeId)).toMatchObject({ sessionEpoch: 2, state: "open" });
    expect(await conditionOf(identity.nodeId, "agent.connected")).toMatchObject({ status: "True" });
  });

  it("is superseded by a newer session on another hub", async () => {
    const identity = await rig.enrolled();
    const second = await rig.secondHub();
    const older = await connect(identity);
    await connect(identity, { port: second.port });
    expect((await older.closing()).code).toBe(CLOSE_CODES.superseded.code);
    expect(await sessionOf(identity.nodeId)).toMatchObject({ sessionEpoch: 2, state: "open" });
  });

  it("ends when its certificate is revoked, on any hub", async () => {
    const identity = await rig.enrolled();
    const second = await rig.secondHub();
    const agent = await connect(identity, { port: second.port });
    await rig.inTx((tx) => revokeCertificates(tx, identity.nodeId, "all", "stolen"));
    expect((await agent.closing()).code).toBe(CLOSE_CODES.identity_revoked.code);
  });

  it("ends when the node is provisioned anew, without a message to the hub", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    await rig.issueToken(identity.nodeId, { generation: 2 });
    expect((await agent.closing()).code).toBe(CLOSE_CODES.identity_revoked.code);
  });

  it("ends at a bad frame, and nothing of the frame is stored", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    agent.sendRaw(JSON.stringify({ type: "inventory", inventory: { hostname: 7 } }));
    expect((await agent.closing()).code).toBe(CLOSE_CODES.bad_frame.code);
    expect(await rig.db.select().from(nodeInventories).where(eq(nodeInventories.nodeId, identity.nodeId))).toEqual([]);
  });

  it("stores the time of contact and the time to live that was sent last", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    await rig.db.update(agentSessions).set({ heartbeatTtlMs: 1 }).where(eq(agentSessions.nodeId, identity.nodeId));
    agent.send({ type: "heartbeat", seq: 7 });
    const ack = await agent.next("heartbeat.ack");
    expect(ack.seq).toBe(7);
    await until("the contact is written", async () =>
      (await sessionOf(identity.nodeId))?.heartbeatTtlMs === ack.heartbeat_ttl_ms ? true : undefined,
    );
    const [node] = await rig.db.select().from(nodes).where(eq(nodes.id, identity.nodeId));
    expect(node?.lastAgentContactAt).not.toBeNull();
  });

  it("reads frames no faster than it handles them, and loses none", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    const seqs = Array.from({ length: 900 }, (_, seq) => seq);
    for (const seq of seqs) agent.send({ type: "heartbeat", seq });
    await agent.settled();
    const acks = agent.frames.filter((frame) => frame.type === "heartbeat.ack").map((frame) => frame.seq);
    expect(acks.slice(0, seqs.length)).toEqual(seqs);
  });

  it("closes with its own code when the hub stops, and leaves the agent's state unknown", async () => {
    const [identity, hesitant] = [await rig.enrolled(), await rig.enrolled()];
    const agent = await connect(identity);
    const withoutHello = await open(hesitant);
    await rig.restart();
    expect((await agent.closing()).code).toBe(CLOSE_CODES.hub_stopping.code);
    expect((await withoutHello.closing()).code).toBe(CLOSE_CODES.hub_stopping.code);
    expect(await sessionOf(identity.nodeId)).toMatchObject({ state: "closed" });
    expect(await conditionOf(identity.nodeId, "agent.connected")).toMatchObject({ status: "Unknown" });
  });
});

describe("readiness", () => {
  const signal = (more: Partial<ReadinessSignal> = {}, condition: object = {}): ReadinessSignal => ({
    signal_id: randomUUID(),
    generation: 1,
    boot_id: "boot-1",
    conditions: [
      {
        type: "agent.healthy",
        status: "True",
        reason: "Healthy",
        message: "All is well",
        observed_at: new Date().toISOString(),
        ...condition,
      },
    ],
    ...more,
  });
  const say = async (agent: SocketAgent, what: ReadinessSignal) => {
    const acknowledged = () =>
      agent.frames.filter((frame) => frame.type === "readiness.ack" && frame.signal_id === what.signal_id).length;
    const before = acknowledged();
    agent.send({ type: "readiness", signal: what });
    await until("the signal is acknowledged", () => (acknowledged() > before ? true : undefined));
  };

  it("is applied once per id, and acknowledged each time", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    const first = signal();
    await say(agent, first);
    await say(agent, signal({}, { status: "False", reason: "DiskFull" }));
    const before = await conditionOf(identity.nodeId, "agent.healthy");
    expect(before).toMatchObject({ status: "False", reason: "DiskFull", generation: 1, source: "agent" });
    await say(agent, first);
    expect(await conditionOf(identity.nodeId, "agent.healthy")).toEqual(before);
    // The hub recognizes a repeated readiness signal by the signal's id, even if the repeated signal names a newer time.
    const [condition] = first.conditions;
    await say(agent, { ...first, conditions: [{ ...condition, observed_at: new Date().toISOString() } as never] });
    expect(await conditionOf(identity.nodeId, "agent.healthy")).toEqual(before);
  });

  it("wakes the workflow that waits for the node", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    const waiting = await rig.waitingWorkflow(`node:${identity.nodeId}`);
    await say(agent, signal());
    expect(await waiting.isDue()).toBe(true);
  });

  it("of an older generation is stored and not applied", async () => {
    const identity = await rig.enrolled("active", 2);
    const agent = await connect(identity);
    const old = signal({ generation: 1 });
    await say(agent, old);
    expect(await conditionOf(identity.nodeId, "agent.healthy")).toBeUndefined();
    expect(JSON.stringify(await rig.snapshot())).toContain(old.signal_id);
  });

  it("observed earlier does not replace a later one, and a clock that runs ahead gains nothing", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    await say(agent, signal({}, { observed_at: new Date(Date.now() + 3_600_000).toISOString() }));
    await say(agent, signal({}, { status: "False", observed_at: new Date(Date.now() + 3_600_000).toISOString() }));
    expect(await conditionOf(identity.nodeId, "agent.healthy")).toMatchObject({ status: "False" });
    await say(agent, signal({}, { status: "True", observed_at: new Date(Date.now() - 60_000).toISOString() }));
    expect(await conditionOf(identity.nodeId, "agent.healthy")).toMatchObject({ status: "False" });
  });

  it("cannot set the condition that the hub owns", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    await say(agent, signal({}, { type: "agent.connected", status: "False" }));
    expect(await conditionOf(identity.nodeId, "agent.connected")).toMatchObject({ status: "True", source: "hub" });
  });

  it("with text that a database cannot store is repaired instead of resent for ever", async () => {
    const identity = await rig.enrolled();
    const agent = await connect(identity);
    await say(agent, signal({}, { message: "a\u0000b\ud800c" }));
    expect(await conditionOf(identity.nodeId, "agent.healthy")).toMatchObject({ message: "a\ufffdb\ufffdc" });
  });
});

describe("the long poll", () => {
  const paths = (identity: Identity) => `/internal/v1/nodes/${identity.nodeId}`;
  const openPoll = async (identity: Identity) => {
    const hello = helloOf(identity);
    const answer = await rig.ask("POST", `${paths(identity)}/sessions`, { as: identity, body: { hello } });
    expect(answer.status).toBe(200);
    return (answer.json as { welcome: { session_epoch: number } }).welcome.session_epoch;
  };

  it("opens a session, takes frames and answers them", async () => {
    const identity = await rig.enrolled();
    const session_epoch = await openPoll(identity);
    expect(await sessionOf(identity.nodeId)).toMatchObject({ channel: "long_poll", state: "open" });
    const body = { session_epoch, frames: [{ type: "heartbeat", seq: 5 }] };
    const answer = await rig.ask("POST", `${paths(identity)}/frames`, { as: identity, body });
    expect(answer.json).toEqual({ frames: [expect.objectContaining({ type: "heartbeat.ack", seq: 5 })] });
  });

  it("ends when a newer session starts", async () => {
    const identity = await rig.enrolled();
    const session_epoch = await openPoll(identity);
    const waiting = rig.ask("GET", `${paths(identity)}/tasks/wait?session_epoch=${session_epoch}&timeout_ms=30000`, {
      as: identity,
    });
    const opened = await sessionOf(identity.nodeId);
    await until("the hub to hear the poll", async () => {
      const heard = await sessionOf(identity.nodeId);
      return Number(heard?.lastSeenAt) > Number(opened?.lastSeenAt) ? true : undefined;
    });
    await connect(identity);
    expect((await waiting).status).toBe(200);
    const body = { session_epoch, frames: [{ type: "heartbeat", seq: 5 }] };
    const stale = await rig.ask("POST", `${paths(identity)}/frames`, { as: identity, body });
    expect(stale).toMatchObject({ status: 409, code: "session_stale" });
    expect(await sessionOf(identity.nodeId)).toMatchObject({ channel: "websocket", state: "open" });
  });

  it("refuses another node's certificate, another protocol and a bad frame, and changes nothing", async () => {
    const [identity, other] = [await rig.enrolled(), await rig.enrolled()];
    const before = await rig.snapshot();
    const path = `${paths(identity)}/sessions`;
    const hello = helloOf(identity);
    expect(await rig.ask("POST", path, { as: other, body: { hello } })).toMatchObject({ code: "certificate_rejected" });
    expect(await rig.ask("POST", path, { body: { hello } })).toMatchObject({ code: "certificate_required" });
    const newer = { ...hello, protocol_version: 99 };
    expect(await rig.ask("POST", path, { as: identity, body: { hello: newer } })).toMatchObject({
      code: "protocol_unsupported",
    });
    const body = { session_epoch: 1, frames: [{ type: "shell" }] };
    const bad = await rig.ask("POST", `${paths(identity)}/frames`, { as: identity, body });
    expect(bad).toMatchObject({ code: "validation_failed" });
    expect(await rig.snapshot()).toEqual(before);
  });
});
