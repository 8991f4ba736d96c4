import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sql } from "../../../hub/db/orm.ts";
import { revokeCertificates } from "../../../hub/db/queries/node-certificates.ts";
import { NODE_RATES } from "../../../hub/gateway/budgets.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { CLOSE_CODES, MAX_FRAME_BYTES } from "../../../shared/protocol/version.ts";
import { GatewayRig, type Identity, makeKey } from "../../support/gateway-rig.ts";
import { hostRows } from "../../support/host-rows.ts";
import { helloOf, SocketAgent } from "../../support/socket-agent.ts";
import { until } from "../../support/until.ts";

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.stop());

const base = (identity: Identity) => `/internal/v1/nodes/${identity.nodeId}`;
async function openPoll(identity: Identity): Promise<number> {
  const body = { hello: helloOf(identity) };
  const answer = await rig.ask("POST", `${base(identity)}/sessions`, { as: identity, body });
  expect(answer.status).toBe(200);
  return (answer.json as { welcome: { session_epoch: number } }).welcome.session_epoch;
}
const deliver = (identity: Identity, session_epoch: unknown, frames: unknown, port?: number) =>
  rig.ask("POST", `${base(identity)}/frames`, {
    as: identity,
    body: { session_epoch, frames },
    ...(port === undefined ? {} : { port }),
  });
const wait = (identity: Identity, query: string) =>
  rig.ask("GET", `${base(identity)}/tasks/wait?${query}`, { as: identity });
const { sessionOf, conditionOf, sessionState } = hostRows(() => rig.db);
const connectedOf = (nodeId: NodeId) => conditionOf(nodeId, "agent.connected");
const closed = (nodeId: NodeId) => sessionState(nodeId, "closed");
const booted = () => ({
  signal_id: randomUUID(),
  generation: 1,
  boot_id: "boot-1",
  conditions: [
    { type: "os.booted", status: "True", reason: "Booted", message: "boot-1", observed_at: new Date().toISOString() },
  ],
});
const progressOf = (progress: string): string =>
  `{"type":"task.progress","task_id":"${randomUUID()}","epoch":1,"seq":1,"progress":${progress}}`;
const BEAT = { type: "heartbeat", seq: 1 };

describe("a long poll", () => {
  it("with an unknown or an older epoch is stale and changes nothing", async () => {
    const identity = await rig.enrolled();
    const first = await openPoll(identity);
    const second = await openPoll(identity);
    expect(second).toBe(first + 1);
    const before = await rig.snapshot();
    for (const epoch of [first, second + 1]) {
      expect(await deliver(identity, epoch, [BEAT])).toMatchObject({ status: 409, code: "session_stale" });
      const waited = await wait(identity, `session_epoch=${epoch}&timeout_ms=0`);
      expect(waited).toMatchObject({ status: 409, code: "session_stale", type: "application/problem+json" });
    }
    expect(await rig.snapshot()).toEqual(before);
    expect((await deliver(identity, second, [BEAT])).status).toBe(200);
  });

  it("on another hub than its session's hub is stale", async () => {
    const identity = await rig.enrolled();
    const second = await rig.secondHub();
    const epoch = await openPoll(identity);
    expect(await deliver(identity, epoch, [BEAT], second.port)).toMatchObject({ code: "session_stale" });
    expect((await deliver(identity, epoch, [BEAT])).status).toBe(200);
  });

  it("returns nothing at its timeout", async () => {
    const identity = await rig.enrolled();
    const epoch = await openPoll(identity);
    const answer = await wait(identity, `session_epoch=${epoch}&timeout_ms=1`);
    expect(answer.status).toBe(200);
    expect(JSON.stringify(answer.json)).not.toContain("task.offer");
  });

  it("accepts a readiness signal, acknowledges it, and applies it once", async () => {
    const identity = await rig.enrolled();
    const epoch = await openPoll(identity);
    const signal = booted();
    const ack = { frames: [{ type: "readiness.ack", signal_id: signal.signal_id }] };
    expect((await deliver(identity, epoch, [{ type: "readiness", signal }])).json).toEqual(ack);
    const before = await rig.snapshot();
    expect((await deliver(identity, epoch, [{ type: "readiness", signal }])).json).toEqual(ack);
    expect(await rig.snapshot()).toEqual(before);
  });

  it("ends at a second hello, and stores nothing that came after it", async () => {
    const identity = await rig.enrolled();
    const epoch = await openPoll(identity);
    const signal = booted();
    const answer = await deliver(identity, epoch, [helloOf(identity), { type: "readiness", signal }]);
    expect(answer).toMatchObject({ status: 200, json: { frames: [] } });
    expect(await deliver(identity, epoch, [BEAT])).toMatchObject({ code: "session_stale" });
    expect(await closed(identity.nodeId)).toMatchObject({ sessionEpoch: epoch });
    expect(JSON.stringify(await rig.snapshot())).not.toContain(signal.signal_id);
  });

  it("ends when its certificate is revoked, and its node is no longer connected", async () => {
    const identity = await rig.enrolled();
    const epoch = await openPoll(identity);
    expect(await connectedOf(identity.nodeId)).toMatchObject({ status: "True" });
    const waiting = wait(identity, `session_epoch=${epoch}&timeout_ms=30000`);
    await rig.inTx((tx) => revokeCertificates(tx, identity.nodeId, "all", "stolen"));
    expect((await waiting).json).toBeDefined();
    expect((await closed(identity.nodeId)).closeReason).toContain(String(CLOSE_CODES.identity_revoked.code));
    expect(await connectedOf(identity.nodeId)).toMatchObject({ status: "False" });
    expect(await deliver(identity, epoch, [BEAT])).toMatchObject({ status: 403, code: "certificate_rejected" });
  });

  it("supersedes a WebSocket, as a WebSocket supersedes a poll", async () => {
    const identity = await rig.enrolled();
    const agent = await SocketAgent.connect(rig, identity);
    await openPoll(identity);
    expect((await agent.closing()).code).toBe(CLOSE_CODES.superseded.code);
    expect(await sessionOf(identity.nodeId)).toMatchObject({ channel: "long_poll", state: "open", sessionEpoch: 2 });
  });

  it("refuses invalid requests and changes nothing", async () => {
    const identity = await rig.enrolled();
    const epoch = await openPoll(identity);
    const before = await rig.snapshot();
    const invalid = { status: 400, type: "application/problem+json", code: "validation_failed" };
    expect(await deliver(identity, 0, [BEAT])).toMatchObject(invalid);
    expect(await deliver(identity, "1", [BEAT])).toMatchObject(invalid);
    expect(await deliver(identity, epoch, [BEAT, { type: "shell", command: "true" }])).toMatchObject(invalid);
    expect(await deliver(identity, epoch, Array(101).fill(BEAT))).toMatchObject(invalid);
    const late = { ...booted(), generation: 2 ** 31 };
    expect(await deliver(identity, epoch, [{ type: "readiness", signal: late }])).toMatchObject(invalid);
    expect(await wait(identity, "timeout_ms=0")).toMatchObject(invalid);
    expect(await wait(identity, `session_epoch=${epoch}&timeout_ms=-1`)).toMatchObject(invalid);
    expect(await wait(identity, "session_epoch=one")).toMatchObject(invalid);
    const raw = await rig.ask("POST", `${base(identity)}/frames`, { as: identity, raw: "{" });
    expect(raw).toMatchObject({ status: 400, code: "malformed_json" });
    const large = `"${"x".repeat(MAX_FRAME_BYTES)}"`;
    const tooLarge = await rig.ask("POST", `${base(identity)}/frames`, { as: identity, raw: large });
    expect(tooLarge).toMatchObject({ status: 413, code: "body_too_large" });
    expect(await rig.snapshot()).toEqual(before);
  });
});

describe("a WebSocket", () => {
  it("opens no session for a valid hello after a refused one", async () => {
    const identity = await rig.enrolled();
    const agent = await SocketAgent.open(rig, identity);
    agent.send(helloOf(identity, { protocol_version: 99 }));
    agent.send(helloOf(identity));
    expect((await agent.closing()).code).toBe(CLOSE_CODES.protocol_unsupported.code);
    const next = await SocketAgent.connect(rig, identity);
    expect(await sessionOf(identity.nodeId)).toMatchObject({ sessionEpoch: 1, state: "open" });
    await next.close();
  });

  it("handles no frame after the one that closes it", async () => {
    const identity = await rig.enrolled();
    const agent = await SocketAgent.connect(rig, identity);
    const signal = booted();
    agent.send(helloOf(identity));
    agent.sendRaw(JSON.stringify({ type: "readiness", signal }));
    expect((await agent.closing()).code).toBe(CLOSE_CODES.bad_frame.code);
    await closed(identity.nodeId);
    expect(JSON.stringify(await rig.snapshot())).not.toContain(signal.signal_id);
  });

  it.each([
    ["at a second hello", (identity: Identity) => JSON.stringify(helloOf(identity)), CLOSE_CODES.bad_frame.code],
    ["at a frame above the largest size", () => `"${"x".repeat(MAX_FRAME_BYTES)}"`, 1009],
    [
      "at an epoch that no column holds",
      () => JSON.stringify({ type: "task.ack", task_id: randomUUID(), epoch: 2 ** 31, state: "received" }),
      CLOSE_CODES.bad_frame.code,
    ],
    ["at a progress without an end", () => progressOf("[".repeat(7) + "]".repeat(7)), CLOSE_CODES.bad_frame.code],
    ["at a progress of many values", () => progressOf(`[${"0,".repeat(600)}0]`), CLOSE_CODES.bad_frame.code],
    ["at a long progress", () => progressOf(`"${"x".repeat(20_000)}"`), CLOSE_CODES.bad_frame.code],
    ["at a frame of an unknown type", () => '{"type":"shell","command":"true"}', CLOSE_CODES.bad_frame.code],
  ])("closes after the welcome %s, and its node is no longer connected", async (_what, frame, code) => {
    const identity = await rig.enrolled();
    const agent = await SocketAgent.connect(rig, identity);
    agent.sendRaw(frame(identity));
    expect((await agent.closing()).code).toBe(code);
    expect(await closed(identity.nodeId)).toMatchObject({ sessionEpoch: 1 });
    expect(await connectedOf(identity.nodeId)).toMatchObject({ status: "False", source: "hub" });
  });
});

describe("two hosts with one identity", () => {
  it("are blocked after long use of a replaced certificate with unreadable requests, which cost the real host no renewal", async () => {
    const first = await rig.enrolled();
    const second = await rig.renew(first, await makeKey());
    const agent = await SocketAgent.connect(rig, second);
    const renew = (body: unknown) => rig.ask("POST", `${base(first)}/certificate`, { as: first, body });
    const unreadable = [{ csr_pem: `-----BEGIN CERTIFICATE REQUEST-----\n${"A".repeat(200)}` }, { surprise: 1 }];
    for (let n = 0; n < NODE_RATES.renewal.burst + 2; n += 1)
      expect(await renew(unreadable[n % 2])).toMatchObject({ status: 403, code: "certificate_replaced" });
    expect((await rig.renew(second, await makeKey())).answer.status).toBe(200);
    await rig.db.execute(sql`update node_certificates set replaced_seen_at = now() - interval '61 seconds'
      where node_id = ${first.nodeId} and replaced_seen_at is not null`);
    expect(await renew({ surprise: 1 })).toMatchObject({ status: 403, code: "certificate_barred" });
    expect((await agent.closing()).code).toBe(CLOSE_CODES.identity_revoked.code);
  });

  it("are blocked in the same transaction as the evidence, so a hub that dies in between loses neither", async () => {
    await rig.db.execute(
      sql.raw(`
      create sequence blocks_tried;
      create function refuse_block() returns trigger language plpgsql as $$ begin
        perform nextval('blocks_tried'); raise exception 'no block now'; end $$;
      create trigger refuse_block before insert on node_identity_bars for each row execute function refuse_block();`),
    );
    const identity = await rig.enrolled();
    const agents = [
      await SocketAgent.connect(rig, identity, { hello: { boot_id: "boot-1" } }),
      await SocketAgent.connect(rig, identity, { hello: { boot_id: "boot-2" } }),
    ];
    await until("the block was tried", async () => {
      const { rows } = await rig.db.execute<{ tried: boolean }>(sql`select is_called as tried from blocks_tried`);
      return rows[0]?.tried === true ? true : undefined;
    });
    expect((await sessionOf(identity.nodeId))?.displacedAt).toBeNull();
    await rig.db.execute(sql`drop trigger refuse_block on node_identity_bars`);
    for (const agent of agents) agent.cut();
  });
});
