import { createPublicKey, X509Certificate } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AGENT_COMES_BACK } from "../../../shared/protocol/version.ts";
import { publicKeyOf, TestAuthority } from "../../fakes/hub/authority.ts";
import type { HostFolder } from "../../fakes/hub/host-folder.ts";
import { newNodeId } from "../../fakes/hub/orders.ts";
import { ScriptedHub } from "../../fakes/hub/scripted-hub.ts";
import { AgentHosts, prepareHost } from "../../support/agent-hosts.ts";
import type { Child } from "../../support/child.ts";
import { until } from "../../support/until.ts";

const TOKEN = "canary-token-0123456789012345678901234567890";
const STATE = "var/lib/muster/agent";
const nodeId = newNodeId();
const ANN = "c2 1001 ann - pts/0\n";

let hub: ScriptedHub;
let hosts: AgentHosts;
let host: HostFolder;
beforeEach(async () => {
  hub = await ScriptedHub.start(nodeId);
  hosts = new AgentHosts();
  host = hosts.add();
  host.tool("loginctl", 'cat "$MUSTER_ROOT/sessions"');
  host.write("sessions", "");
});
afterEach(async () => {
  await hosts.end();
  await hub.close();
});

function configure({ ca = hub.authority.caPem, generation = 1 } = {}): void {
  const known = { url: hub.url, caPem: ca, orderKey: hub.signer.publicKey };
  prepareHost(host, known, { nodeId, generation, token: TOKEN });
}
const startAgent = (): Child => hosts.start(host);
const log = (): string => host.read("agent.log");
const connected = (times = 1) => until(`${times} hellos`, () => (hub.hellos.length >= times ? true : undefined));
const logged = (text: string) => until(`log line with ${text}`, () => (log().includes(text) ? true : undefined));
const drain = { type: "node.drain", input: { reason: "test", deadline_seconds: 3_600, force: false } };
const uninstall = { type: "node.uninstall", input: { reason: "test" } };
const check = { type: "node.heartbeat_check", input: { nonce: "n-1" } };
const result = (taskId: string) =>
  until(`result of ${taskId}`, () => hub.said("task.result").find((frame) => frame.task_id === taskId));

describe("agent and hub: identity", () => {
  it("enrolls with its own key, connects, reports, and leaves no token behind", async () => {
    configure();
    startAgent();
    await connected();
    await until("readiness", () => hub.said("readiness")[0]);
    expect(hub.enrollments).toMatchObject([
      { node_id: nodeId, token: TOKEN, hostname: "gpu-01", macs: ["aa:bb:cc:00:00:01"] },
    ]);
    expect(hub.said("readiness")[0]?.signal.conditions.map(({ type, status }) => [type, status])).toEqual([
      ["agent.healthy", "True"],
      ["os.booted", "True"],
    ]);
    expect(JSON.parse(host.read(`${STATE}/identity.json`))).toMatchObject({ node_id: nodeId, generation: 1 });
    expect([host.mode(`${STATE}/key.pem`), host.mode(`${STATE}/journal`)]).toEqual(["600", "600"]);
    expect(host.has("etc/muster/enrollment-token")).toBe(false);
    expect(log()).not.toContain("canary");
    expect(log()).not.toContain("PRIVATE KEY");
  });

  it("repeats the request with the same key after a lost answer, even after a kill", async () => {
    hub.loseEnrollments = 2;
    configure();
    const first = startAgent();
    await until("the first request", () => hub.enrollments[0]);
    first.kill("SIGKILL");
    await first.gone;
    startAgent();
    await connected();
    expect(hub.enrollments.length).toBeGreaterThanOrEqual(3);
    const asked = hub.enrollments.map((one) => publicKeyOf(one.csr_pem));
    expect(new Set(asked).size).toBe(1);
  });

  it("sends its token to no hub of another CA", async () => {
    configure({ ca: (await TestAuthority.make()).caPem });
    startAgent();
    await logged("not of the CA");
    expect(hub.enrollments).toEqual([]);
    expect(host.has("etc/muster/enrollment-token")).toBe(true);
  });

  it("logs that the clock may be wrong when the hub's certificate is out of date", async () => {
    await hub.close();
    hub = await ScriptedHub.start(nodeId, { serverNotAfter: new Date(Date.now() - 1_000) });
    configure();
    startAgent();
    await logged("Check this host's clock");
  });

  it("logs a refusal's code and tries again", async () => {
    hub.refuseEnrollments = { status: 401, code: "token_expired" };
    configure();
    startAgent();
    await logged("token_expired");
    hub.refuseEnrollments = null;
    await connected();
  });

  it("enrolls again with a new key for a new generation", async () => {
    configure();
    const first = startAgent();
    await connected();
    await first.stop();
    const key = host.read(`${STATE}/key.pem`);
    await hub.close();
    hub = await ScriptedHub.start(nodeId, { generation: 2 });
    configure({ generation: 2 });
    startAgent();
    await connected();
    expect(hub.hellos[0]?.generation).toBe(2);
    expect(host.read(`${STATE}/key.pem`)).not.toBe(key);
  });

  it("renews a certificate that expired while the host was off, and connects with it", async () => {
    hub.certificateLifeMs = 3_000;
    configure();
    const first = startAgent();
    await connected();
    await first.stop();
    const { validToDate } = new X509Certificate(host.read(`${STATE}/certificate.pem`));
    await until("the certificate to expire", () => (Date.now() > validToDate.getTime() ? true : undefined));
    hub.certificateLifeMs = 24 * 3_600_000;
    // The first certificate of the agent is valid for three seconds only. The agent renews a certificate of three seconds at once, so it may already
    // have connected a second time.
    const { renewals, hellos } = hub;
    const before = hellos.length;
    startAgent();
    await connected(before + 1);
    expect(hub.renewals).toBe(renewals + 1);
    expect(hub.enrollments).toHaveLength(1);
  });

  it("renews a certificate that is expired only by the hub's clock", async () => {
    hub.certificateLifeMs = -1_000;
    configure();
    startAgent();
    await until("a renewal", () => (hub.renewals > 0 ? true : undefined));
    expect(hub.hellos).toEqual([]);
    hub.certificateLifeMs = 24 * 3_600_000;
    await connected();
    expect(hub.enrollments).toHaveLength(1);
  });

  it("reconnects with its renewed certificate and a new key as soon as it has them", async () => {
    // The hub dates the start of the agent's certificate back by an hour, so more than half of the certificate's life has passed.
    hub.certificateLifeMs = 600_000;
    configure();
    startAgent();
    await connected(2);
    expect(hub.closes).toEqual([AGENT_COMES_BACK]);
    expect([hub.renewals, hub.enrollments.length]).toEqual([1, 1]);
    const present = createPublicKey(host.read(`${STATE}/key.pem`)).export({ type: "spki", format: "der" });
    expect(present.toString("base64")).not.toBe(publicKeyOf(hub.enrollments[0]?.csr_pem ?? ""));
    expect(hub.serials[1]).not.toBe(hub.serials[0]);
  });

  it("enrolls again when its identity file is damaged", async () => {
    configure();
    const first = startAgent();
    await connected();
    await first.stop();
    configure();
    host.write(`${STATE}/identity.json`, '{"node_id":');
    startAgent();
    await connected(2);
    expect(hub.enrollments).toHaveLength(2);
  });

  it("exits with status 78 on an unusable configuration, and with 0 when it is stopped", async () => {
    configure();
    host.write("etc/muster/agent.json", "{}");
    expect(await startAgent().gone).toEqual({ code: 78, signal: null });
    configure();
    const agent = startAgent();
    await connected();
    agent.kill("SIGTERM");
    expect(await agent.gone).toEqual({ code: 0, signal: null });
  });
});

describe("agent and hub: channel", () => {
  it("reconnects after every kind of close", async () => {
    configure();
    startAgent();
    let times = 0;
    for (const code of [4012, 1011, 4000, 1000]) {
      await connected(++times);
      await until("a heartbeat", () => hub.said("heartbeat").at(-1));
      hub.closeSocket(code);
    }
    await connected(++times);
  });

  it("survives meaningless frames and carries out the next order", async () => {
    configure();
    startAgent();
    await connected();
    for (const text of ["<html>502</html>", "{}", '{"type":"from_the_future"}', '{"__proto__":{}}', "[".repeat(20_000)])
      hub.sendText(text);
    const order = hub.signer.sign(nodeId, check);
    hub.send({ type: "task.offer", order });
    expect((await result(order.task_id)).reply).toMatchObject({ ok: true, result: { nonce: "n-1" } });
    expect(hub.hellos).toHaveLength(1);
  });

  it("reconnects after a frame that is too large", async () => {
    configure();
    startAgent();
    await connected();
    hub.sendText(JSON.stringify({ padding: "x".repeat(2 * 1024 * 1024) }));
    await connected(2);
  });

  it("notices a connection that is dead on one side", async () => {
    configure();
    startAgent();
    await connected();
    hub.silent = true;
    await until("a disconnect", () => (log().includes("disconnected") ? true : undefined));
    hub.silent = false;
    await until("a welcomed hello", () => (log().split('"connected"').length > 2 ? true : undefined));
  });

  it("uses the long poll when no WebSocket is possible, also for tasks", async () => {
    hub.blockSockets = true;
    configure();
    startAgent();
    await connected();
    const order = hub.signer.sign(nodeId, check);
    hub.queue({ type: "task.offer", order });
    expect((await result(order.task_id)).reply).toMatchObject({ ok: true });
    await until("a heartbeat", () => hub.said("heartbeat")[0]);
    expect(log()).toContain('"channel":"long_poll"');
    hub.blockSockets = false;
  });

  it("reports a wrong clock, and judges orders by the hub's clock", async () => {
    hub.clockSkewMs = -7_200_000;
    configure();
    startAgent();
    await connected();
    const order = hub.signer.sign(nodeId, { ...check, not_after: new Date(Date.now() - 3_600_000).toISOString() });
    hub.send({ type: "task.offer", order });
    expect((await result(order.task_id)).reply).toMatchObject({ ok: true });
    const healthy = await until("health", () => hub.said("readiness")[0]?.signal.conditions[0]);
    expect(healthy).toMatchObject({
      status: "False",
      reason: "ClockSkewed",
      message: expect.stringContaining("ahead"),
    });
  });
});

describe("agent and hub: tasks", () => {
  it("resends a result until it is acknowledged, across reconnects and restarts", async () => {
    hub.acknowledgeResults = false;
    configure();
    const first = startAgent();
    await connected();
    const order = hub.signer.sign(nodeId, check);
    hub.send({ type: "task.offer", order });
    await until("three results", () => (hub.said("task.result").length >= 3 ? true : undefined));
    first.kill("SIGKILL");
    await first.gone;
    const before = hub.said("task.result").length;
    startAgent();
    await connected(2);
    expect(hub.hellos[1]?.journal).toEqual([{ task_id: order.task_id, epoch: 1, state: "finished" }]);
    await until("it again", () => (hub.said("task.result").length > before ? true : undefined));
    hub.acknowledgeResults = true;
    await until("it is reported", () => (host.read(`${STATE}/journal`).includes('"reported"') ? true : undefined));
    const replies = hub.said("task.result").map((frame) => JSON.stringify(frame.reply));
    expect(new Set(replies).size).toBe(1);
  });

  it("reports a task as interrupted after the agent was killed during it, and does not run it again", async () => {
    host.write("sessions", ANN);
    configure();
    const first = startAgent();
    await connected();
    const order = hub.signer.sign(nodeId, drain);
    hub.send({ type: "task.offer", order });
    await until("progress", () => hub.said("task.progress")[0]);
    first.kill("SIGKILL");
    await first.gone;
    startAgent();
    expect((await result(order.task_id)).reply).toMatchObject({ ok: false, error: "interrupted" });
    // Until the hub has confirmed a task's result, the agent answers a repeated order for the task with that result. After the hub has confirmed a
    // task's result, the agent refuses a repeated order for the task as a replay.
    const ran = hub.said("task.progress").length;
    const refused = await until(
      "it is refused",
      () => {
        hub.send({ type: "task.offer", order });
        return hub.said("task.rejected")[0];
      },
      { everyMs: 200 },
    );
    expect(refused).toMatchObject({ reason: "replayed" });
    expect(hub.said("task.progress")).toHaveLength(ran);
  });

  it("reports a running task as interrupted when it is stopped", async () => {
    hub.heartbeatTtlMs = 60_000;
    host.write("sessions", ANN);
    configure();
    const agent = startAgent();
    await connected();
    const order = hub.signer.sign(nodeId, drain);
    hub.send({ type: "task.offer", order });
    await until("progress", () => hub.said("task.progress")[0]);
    await agent.stop();
    expect((await result(order.task_id)).reply).toMatchObject({ ok: false, error: "interrupted" });
    expect(await agent.gone).toMatchObject({ code: 0 });
  });

  it("cancels a drain on request and admits logins again", async () => {
    hub.heartbeatTtlMs = 60_000;
    host.write("sessions", ANN);
    configure();
    startAgent();
    await connected();
    const order = hub.signer.sign(nodeId, drain);
    hub.send({ type: "task.offer", order });
    await until("progress", () => hub.said("task.progress")[0]);
    expect(host.has("etc/nologin")).toBe(true);
    hub.send({ type: "task.cancel", task_id: order.task_id, epoch: 1 });
    expect((await result(order.task_id)).reply).toMatchObject({ ok: false, error: "cancelled" });
    expect(hub.said("task.cancelled")).toHaveLength(1);
    expect(host.has("etc/nologin")).toBe(false);
  });

  it("uninstalls itself when its node is deleted and the acknowledgement was lost, but not when its certificates are revoked", async () => {
    hub.acknowledgeResults = false;
    // The hub asks for rare heartbeats, so that the agent keeps the connection open until the hub closes it.
    hub.heartbeatTtlMs = 60_000;
    configure();
    const agent = startAgent();
    await connected();
    const order = hub.signer.sign(nodeId, uninstall);
    hub.send({ type: "task.offer", order });
    expect((await result(order.task_id)).reply).toMatchObject({ ok: true });
    // The test acts as if an operator had cancelled the node's remove, and had later revoked the node's certificates.
    hub.refuseRenewals = { status: 403, code: "certificate_rejected" };
    hub.closeSocket(4003);
    await logged("could not be made good");
    expect(host.has("etc/muster/agent.json")).toBe(true);
    hub.refuseSockets = { status: 410, code: "node_deleted" };
    hub.refuseRenewals = hub.refuseSockets;
    await agent.stop();
    expect(await startAgent().gone).toMatchObject({ code: 79 });
    expect(host.has("etc/muster/agent.json")).toBe(false);
  });

  it("carries out no forged order", async () => {
    configure();
    startAgent();
    await connected();
    const order = hub.signer.sign(nodeId, check);
    hub.send({ type: "task.offer", order: { ...order, input: { nonce: "other" } } });
    hub.send({ type: "task.offer", order: { ...hub.signer.sign(nodeId, check), epoch: 2 } });
    await until("two refusals", () => (hub.said("task.rejected").length === 2 ? true : undefined));
    expect(hub.said("task.rejected").map((frame) => frame.reason)).toEqual(["input_mismatch", "bad_signature"]);
    expect(hub.said("task.result")).toEqual([]);
  });
});
