import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { Agent } from "node:https";
import { connect, createServer, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KEPT_OF_A_NODE } from "../../../hub/db/kept.ts";
import { and, eq, sql } from "../../../hub/db/orm.ts";
import { nodeConditions, nodeEvents } from "../../../hub/db/schema/index.ts";
import { ADDRESS_RATES, NODE_RATES } from "../../../hub/gateway/budgets.ts";
import { sweepConditions } from "../../../hub/node/condition-sweep.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { nodeUri } from "../../../shared/api/enroll.ts";
import { CONDITION_TYPES } from "../../../shared/condition-types.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { CLOSE_CODES } from "../../../shared/protocol/version.ts";
import { TRUST_PATH } from "../../../shared/trust.ts";
import { type Answer, GatewayRig, makeKey } from "../../support/gateway-rig.ts";
import { helloOf, SocketAgent } from "../../support/socket-agent.ts";
import { until } from "../../support/until.ts";

/**
 * The tests let hostile hosts attack a hub to which good agents are connected. The rate limits in `RATES` are lower than the hub's own limits, so
 * that the tests are fast. A rate limit that a test uses up refills so slowly that the speed of the computer does not matter.
 */
const RATES = {
  ...NODE_RATES,
  session: { burst: 8, perMinute: 1 },
  renewal: { burst: 4, perMinute: 1 },
  enrollment: { burst: 4, perMinute: 1 },
  poll: { burst: 40, perMinute: 1 },
  readiness: { burst: 20, perMinute: 60 },
  progress: { burst: 20, perMinute: 60 },
};
const UNPROVEN = 40;
const REFUSALS = 60;
const GOOD = 200;
const ENROLL = "/internal/v1/nodes/enroll";

let rig: GatewayRig;
const good: SocketAgent[] = [];
beforeAll(async () => {
  rig = await GatewayRig.start({
    limits: {
      nodes: { rates: RATES, noisyAfterMs: 500, calmAfterMs: 2_000 },
      unproven: { perAddress: UNPROVEN, inAll: 100 },
      addresses: { ...ADDRESS_RATES, refusal: { burst: REFUSALS, perMinute: 1 } },
    },
  });
  while (good.length < GOOD) {
    // The agents connect in small groups, because the hub limits the number of unauthenticated connections from one address.
    const next = Array.from({ length: UNPROVEN / 2 }, async () => SocketAgent.connect(rig, await rig.enrolled()));
    good.push(...(await Promise.all(next)));
  }
});
afterAll(() => rig?.stop());

async function expectGoodAgents(): Promise<void> {
  await Promise.all(good.map((agent) => agent.settled()));
  expect(good.filter((agent) => agent.closed !== null)).toEqual([]);
  expect((await rig.ask("GET", "/healthz")).status).toBe(200);
}

const signalOf = (type: string) => ({
  signal_id: randomUUID(),
  generation: 1,
  boot_id: "boot-1",
  conditions: [
    { type, status: "True", reason: "Said", message: "x".repeat(1024), observed_at: new Date().toISOString() },
  ],
});
const rowsOf = async (table: string, nodeId: NodeId): Promise<number> => {
  const { rows } = await rig.db.execute<{ n: number }>(
    sql`select count(*)::int as n from ${sql.identifier(table)} where node_id = ${nodeId}`,
  );
  return rows[0]?.n ?? -1;
};
const noisyOf = async (nodeId: NodeId) =>
  (
    await rig.db
      .select()
      .from(nodeConditions)
      .where(and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.type, "agent.noisy")))
  )[0];

describe("a stranger", () => {
  it("who sends large or deep bodies is refused, and good agents are not disturbed", async () => {
    const large = `{"a":"\\u0000","b":[${"0,".repeat(500_000)}0]}`;
    const deep = "[".repeat(8_000) + "]".repeat(8_000);
    const answers = Promise.all(
      Array.from({ length: 16 }, (_, n) => rig.ask("POST", ENROLL, { raw: n % 2 === 0 ? large : deep })),
    );
    await expectGoodAgents();
    expect(new Set((await answers).map(({ code }) => code))).toEqual(new Set(["body_too_large", "validation_failed"]));
  });

  it("who tries tokens is rate-limited, and a good host at the same address still enrolls", async () => {
    const nodeId = await rig.addNode();
    const bad = await rig.enrollRequest(nodeId, "x".repeat(43), await makeKey());
    const tried: Answer[] = [];
    for (let n = 0; n < REFUSALS + 20; n += 1) tried.push(await rig.enroll(bad));
    const late = tried.filter(({ code }) => code === "rate_limited");
    expect(late.length).toBeGreaterThan(0);
    expect(tried.filter(({ code }) => code === "token_unknown").length).toBeGreaterThan(30);
    expect(late[0]).toMatchObject({ status: 429, retryAfter: expect.stringMatching(/^[1-9]\d*$/) });
    const key = await makeKey();
    expect((await rig.enroll(await rig.enrollRequest(nodeId, await rig.issueToken(nodeId), key))).status).toBe(200);
    await expectGoodAgents();
  });

  it("who opens silent connections holds only a few of them and keeps no host out", async () => {
    const opened: Socket[] = [];
    try {
      for (let n = 0; n < 3 * UNPROVEN; n += 1) {
        const socket = connect(rig.listener.port, "127.0.0.1");
        socket.on("error", () => undefined);
        opened.push(socket);
        await new Promise((resolve) => socket.once("connect", resolve));
      }
      await until("the oldest are cut", () =>
        opened.filter((socket) => !socket.closed).length <= UNPROVEN ? true : undefined,
      );
      const late = await SocketAgent.connect(rig, await rig.enrolled());
      await late.settled();
      await late.close();
      await expectGoodAgents();
    } finally {
      for (const socket of opened) socket.destroy();
    }
  });
});

async function clientHello(): Promise<Buffer> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const client = connectTls({ port, host: "127.0.0.1" }).on("error", () => undefined);
  const [socket] = (await once(server, "connection")) as [Socket];
  const [hello] = (await once(socket, "data")) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return hello;
}

describe("a stranger who begins hundreds of handshakes at once", () => {
  it("waits in its own queue, while a host of another address gets its turn", async () => {
    const { port, close } = await rig.secondHub({ limits: {} });
    const hello = await clientHello();
    const opened: Socket[] = [];
    let answered = 0;
    try {
      for (let n = 0; n < 800; n += 1) {
        const socket = connect(port, "127.0.0.1").on("error", () => undefined);
        socket.once("data", () => (answered += 1));
        opened.push(socket);
      }
      await until("all are there", () => (opened.every((one) => one.readyState === "open") ? true : undefined));
      const identity = await rig.enrolled();
      for (const socket of opened) socket.write(hello);
      const late = await SocketAgent.connect(rig, identity, { port, from: "127.0.0.2" });
      expect(answered).toBeLessThan(500);
      await until("he gets his turns", () => (answered === 800 ? true : undefined));
      await late.settled();
      await late.close();
      await expectGoodAgents();
    } finally {
      for (const socket of opened) socket.destroy();
      await close();
    }
  });
});

describe("a stranger who repeats requests that need no proof", () => {
  it("is rate-limited", async () => {
    const open = { burst: 10, perMinute: 6 };
    const { port, close } = await rig.secondHub({ limits: { addresses: { ...ADDRESS_RATES, open } } });
    const asked: Answer[] = [];
    for (let n = 0; n < 2 * open.burst; n += 1)
      asked.push(await rig.ask("GET", n % 2 === 0 ? TRUST_PATH : "/healthz", { port }));
    await close();
    expect(asked.slice(0, open.burst).map(({ status }) => status)).toEqual(Array(open.burst).fill(200));
    const late = asked.filter(({ status }) => status === 429);
    expect(late.length).toBeGreaterThan(0);
    expect(late[0]).toMatchObject({ code: "rate_limited", retryAfter: expect.stringMatching(/^[1-9]\d*$/) });
  });
});

describe("an enrolled host", () => {
  it("that floods unknown signals is slowed down, reported, disconnected, and forgiven once it stops", async () => {
    const identity = await rig.enrolled();
    const hostile = await SocketAgent.connect(rig, identity);
    for (let n = 0; n < 400; n += 1) hostile.send({ type: "readiness", signal: signalOf(`x.type_${n}`) } as never);
    expect(await hostile.closing()).toEqual({ code: CLOSE_CODES.rate_limited.code, reason: "rate_limited" });
    const noisy = await until("it is told of", () => noisyOf(identity.nodeId));
    await expectGoodAgents();
    const taken = await rowsOf("readiness_signals", identity.nodeId);
    expect(taken).toBeGreaterThanOrEqual(RATES.readiness.burst);
    expect(taken).toBeLessThanOrEqual(KEPT_OF_A_NODE.signals);
    expect(await rowsOf("node_conditions", identity.nodeId)).toBeLessThanOrEqual(Object.keys(CONDITION_TYPES).length);
    expect(noisy).toMatchObject({ status: "True", reason: "OverBudget", source: "hub" });
    expect(noisy.message).toContain("readiness");
    const events = await rig.db.select().from(nodeEvents).where(eq(nodeEvents.nodeId, identity.nodeId));
    expect(events.filter(({ type }) => type === "agent_noisy")).toHaveLength(1);
    await until("it is noisy no more", async () => ((await noisyOf(identity.nodeId)) === undefined ? true : undefined));
    const back = await SocketAgent.connect(rig, identity);
    await back.settled();
    await back.close();
  });

  it("that floods progress of unknown tasks is disconnected", async () => {
    const hostile = await SocketAgent.connect(rig, await rig.enrolled());
    for (let n = 0; n < 400; n += 1)
      hostile.send({
        type: "task.progress",
        task_id: randomUUID(),
        epoch: 1,
        seq: n,
        progress: ["x".repeat(8_000)],
      } as never);
    expect((await hostile.closing()).code).toBe(CLOSE_CODES.rate_limited.code);
    await expectGoodAgents();
  });

  const refusedOf = (
    answers: readonly { status: number; code: string | undefined; retryAfter: string | undefined }[],
  ) => {
    const refused = answers.filter(({ status }) => status === 429);
    for (const answer of refused)
      expect(answer).toMatchObject({ code: "rate_limited", retryAfter: expect.any(String) });
    return refused.length;
  };

  it("that renews all the time gets few certificates, by renewal and by its token", async () => {
    const key = await makeKey();
    const nodeId = await rig.addNode("active");
    const request = await rig.enrollRequest(nodeId, await rig.issueToken(nodeId), key);
    const enrolled: Answer[] = [];
    for (let n = 0; n < 10; n += 1) enrolled.push(await rig.enroll(request));
    expect(refusedOf(enrolled)).toBeGreaterThanOrEqual(10 - RATES.enrollment.burst - 1);
    const identity = await rig.enrolled();
    const renewed: Answer[] = [];
    for (let n = 0; n < 10; n += 1) {
      const body = { csr_pem: await (await makeKey()).csr(nodeUri(identity.nodeId)) };
      renewed.push(await rig.ask("POST", `/internal/v1/nodes/${identity.nodeId}/certificate`, { as: identity, body }));
    }
    expect(refusedOf(renewed)).toBeGreaterThanOrEqual(10 - RATES.renewal.burst - 1);
    expect(await rowsOf("node_certificates", identity.nodeId)).toBeLessThanOrEqual(RATES.renewal.burst + 2);
    await expectGoodAgents();
  });

  it("that opens sessions without end, by WebSocket and long poll, is rate-limited", async () => {
    const identity = await rig.enrolled();
    const base = `/internal/v1/nodes/${identity.nodeId}`;
    const opened: Answer[] = [];
    for (let n = 0; n < 20; n += 1)
      opened.push(await rig.ask("POST", `${base}/sessions`, { as: identity, body: { hello: helloOf(identity) } }));
    expect(refusedOf(opened)).toBeGreaterThan(5);
    await expect(SocketAgent.open(rig, identity)).rejects.toThrow("HTTP 429 rate_limited");
    await expectGoodAgents();
  });

  it("that polls or sends frames without end is rate-limited", async () => {
    const identity = await rig.enrolled();
    const base = `/internal/v1/nodes/${identity.nodeId}`;
    const { json } = await rig.ask("POST", `${base}/sessions`, { as: identity, body: { hello: helloOf(identity) } });
    const { session_epoch } = (json as { welcome: { session_epoch: number } }).welcome;
    const frames = (count: number) => ({
      session_epoch,
      frames: Array.from({ length: count }, () => ({ type: "readiness", signal: signalOf("os.booted") })),
    });
    const many = await rig.ask("POST", `${base}/frames`, { as: identity, body: frames(60) });
    expect(many).toMatchObject({ status: 429, code: "rate_limited" });
    expect(await rowsOf("readiness_signals", identity.nodeId)).toBeLessThanOrEqual(RATES.readiness.burst + 10);
    const polls: Answer[] = [];
    for (let n = 0; n < RATES.poll.burst + 20; n += 1)
      polls.push(
        await rig.ask("GET", `${base}/tasks/wait?session_epoch=${session_epoch}&timeout_ms=0`, { as: identity }),
      );
    expect(refusedOf(polls)).toBeGreaterThan(0);
    await expectGoodAgents();
  });

  it("that asks for others' paths, or with a replaced certificate, is limited like a stranger", async () => {
    const identity = await rig.enrolled();
    const { nodeId } = identity;
    const other = await rig.addNode();
    const own = `/internal/v1/nodes/${nodeId}`;
    for (const [from, path, status] of [
      ["127.0.0.76", "/nowhere", 404],
      ["127.0.0.77", `/internal/v1/nodes/${other}/tasks/wait?session_epoch=1`, 403],
    ] as const) {
      // All requests of the hostile host use one connection, on which the hub has already authenticated the host.
      const proven = new Agent({ keepAlive: true, maxSockets: 1, localAddress: from });
      const ask = (what: string) => rig.ask("GET", what, { as: identity, agent: proven });
      try {
        expect((await ask(`${own}/tasks/wait?session_epoch=1`)).code).toBe("session_stale");
        const answers: Answer[] = [];
        for (let n = 0; n < REFUSALS + 10; n += 1) answers.push(await ask(path));
        expect(answers[0]?.status).toBe(status);
        expect(answers.at(-1)?.text).toContain(`Too many requests from ${from} were refused`);
      } finally {
        proven.destroy();
      }
    }
    const replaced = new Agent({ keepAlive: true, maxSockets: 1, localAddress: "127.0.0.78" });
    try {
      const { answer: _answer, ...next } = await rig.renew(identity, await makeKey());
      await (await SocketAgent.connect(rig, next)).close();
      const answers: Answer[] = [];
      for (let n = 0; n < REFUSALS + 10; n += 1)
        answers.push(await rig.ask("POST", `${own}/certificate`, { as: identity, body: {}, agent: replaced }));
      expect(answers[0]).toMatchObject({ status: 403, code: "certificate_replaced" });
      expect(answers.at(-1)?.text).toContain("Too many requests from 127.0.0.78 were refused");
    } finally {
      replaced.destroy();
    }
    await expectGoodAgents();
  });

  it("keeps no more of its events and certificates than the limits per node", async () => {
    const identity = await rig.enrolled();
    const { nodeId } = identity;
    const insert = (type: string, count: number, owner = "agent") =>
      rig.db.execute(sql`insert into node_events (node_id, type, owner, message)
        select ${nodeId}, ${type}, ${owner}, '' from generate_series(1, ${count}::int)`);
    const eventsOf = async (type: string) =>
      (await rig.db.execute(sql`select owner from node_events where node_id = ${nodeId} and type = ${type}`)).rows;
    await insert("created", 1, "admin_api");
    await insert("certificate_renewed", 600);
    await insert("session_opened", 450);
    await rig.db.execute(sql`insert into node_certificates (serial, node_id, generation, public_key_sha256, not_before, not_after, issued_at, replaced_at)
      select gen_random_uuid()::text, ${nodeId}, 1, 'f', now(), now() + interval '1 day', now() - interval '1 hour', now() from generate_series(1, 400)`);
    const body = { csr_pem: await (await makeKey()).csr(nodeUri(nodeId)) };
    const answer = await rig.ask("POST", `/internal/v1/nodes/${nodeId}/certificate`, { as: identity, body });
    expect(answer.status).toBe(200);
    const kept = KEPT_OF_A_NODE.hostEvents;
    expect(await eventsOf("certificate_renewed")).toHaveLength(kept.certificate_renewed);
    // The hub limits the stored events of a node separately for each event type. Session events reveal that an old system of a host has started, so
    // events of other types may not displace session events.
    expect(await eventsOf("session_opened")).toHaveLength(450);
    expect(await eventsOf("created")).toHaveLength(1);
    expect(await rowsOf("node_certificates", nodeId)).toBe(KEPT_OF_A_NODE.certificates);
    await insert("session_opened", 450);
    const back = await SocketAgent.connect(rig, identity);
    await back.close();
    expect(await eventsOf("session_opened")).toHaveLength(kept.session_opened);
  });

  it("keeps only a limited number of its silence events, but every status change by others", async () => {
    const { nodeId } = await rig.enrolled();
    const insert = (type: string, owner: string, count: number) =>
      rig.db.execute(sql`insert into node_events (node_id, type, owner, message)
        select ${nodeId}, ${type}, ${owner}, '' from generate_series(1, ${count}::int)`);
    const eventsOf = async (type: string, owner: string) =>
      (
        await rig.db.execute(
          sql`select 1 from node_events where node_id = ${nodeId} and type = ${type} and owner = ${owner}`,
        )
      ).rows.length;
    const kept = KEPT_OF_A_NODE.hostEvents;
    await insert("status_changed", "heartbeat", kept.status_changed + 50);
    await insert("status_changed", "admin_api", kept.status_changed + 50);
    await insert("condition_stale", "hub", kept.condition_stale + 50);
    await rig.inTx((tx) => moveNode(tx, nodeId, { from: "active", to: "offline", owner: "heartbeat" }, "silent"));
    expect(await eventsOf("status_changed", "heartbeat")).toBe(kept.status_changed);
    await rig.inTx((tx) => moveNode(tx, nodeId, { from: "offline", to: "active", owner: "heartbeat" }, "heard of"));
    expect(await eventsOf("status_changed", "admin_api")).toBe(kept.status_changed + 50);
    await sweepConditions(rig.inTx, 0);
    await rig.db.execute(sql`insert into node_conditions (node_id, type, status, reason, message, generation, source, observed_at, expires_at)
      values (${nodeId}, 'agent.healthy', 'True', 'Said', '', 1, 'agent', now(), now())
      on conflict (node_id, type) do update set expires_at = now()`);
    expect(await sweepConditions(rig.inTx, 0)).toBe(1);
    expect(await eventsOf("condition_stale", "hub")).toBe(kept.condition_stale);
  });
});
