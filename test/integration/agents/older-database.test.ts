import { X509Certificate } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { readConditions } from "../../../hub/db/queries/node-conditions.ts";
import { nextGeneration, readNode } from "../../../hub/db/queries/nodes.ts";
import { readTask } from "../../../hub/db/queries/task-reads.ts";
import { enqueueTask, extendHeldTasks, lapseTasks } from "../../../hub/db/queries/tasks.ts";
import {
  databaseRestores,
  nodeCertificates,
  nodeConditions,
  nodeEvents,
  nodes,
  type Task,
  tasks,
} from "../../../hub/db/schema/index.ts";
import { openCertificateAuthority } from "../../../hub/gateway/certificate-authority.ts";
import { serialOf } from "../../../hub/gateway/x509.ts";
import { nodeUri } from "../../../shared/api/enroll.ts";
import type { NodeId, TaskId } from "../../../shared/ids.ts";
import type { JournalState } from "../../../shared/protocol/frames.ts";
import { GatewayRig, type Identity, makeKey } from "../../support/gateway-rig.ts";
import { keptAgents } from "../../support/kept-agents.ts";
import { MemorySecrets } from "../../support/memory-secrets.ts";
import { helloOf, SocketAgent } from "../../support/socket-agent.ts";
import { until } from "../../support/until.ts";

/** A hub on a database that was restored from a backup, and hosts that have gone on since the backup. */
let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.stop());

const kept = keptAgents(() => rig);
const [MINUTE, HOUR] = [60_000, 3_600_000];
const hoursAgo = (hours: number): Date => new Date(Date.now() - hours * HOUR);
const serialIn = ({ certPem }: Identity): string => serialOf(new X509Certificate(certPem).serialNumber);
const refusal = (identity: Identity) =>
  SocketAgent.open(rig, identity, { from: "127.0.0.1" }).then(() => "accepted", String);
const lose = (identity: Identity) =>
  rig.db.delete(nodeCertificates).where(eq(nodeCertificates.serial, serialIn(identity)));
const stored = async (identity: Identity) =>
  (
    await rig.db
      .select()
      .from(nodeCertificates)
      .where(eq(nodeCertificates.serial, serialIn(identity)))
  )[0];
/**
 * Notes a restore at the time `until`. Returns the number of whole minutes from the begin of 2026 to the restore, which the next generation of each
 * node has after the restore, unless the node's generation is larger already (decision I10).
 */
async function restored(from: Date, until = new Date()): Promise<number> {
  await rig.db.delete(databaseRestores);
  await rig.db.insert(databaseRestores).values({ backupTakenAt: from, restoredAt: until });
  return Math.floor((until.getTime() - Date.UTC(2026, 0, 1)) / MINUTE);
}
/** A host that enrolled before the backup, and got another certificate the given number of hours ago. */
async function hostWithLostCertificate(hours: number): Promise<{ before: Identity; lost: Identity }> {
  const before = await rig.enrolled();
  await kept.connect(before, {});
  await rig.db
    .update(nodeCertificates)
    .set({ issuedAt: hoursAgo(10) })
    .where(eq(nodeCertificates.serial, serialIn(before)));
  const lost = await rig.expired(before, hours - 24);
  await lose(lost);
  return { before, lost };
}
const eventsOf = (nodeId: NodeId) => rig.db.select().from(nodeEvents).where(eq(nodeEvents.nodeId, nodeId));

describe("a certificate that the hub issued after the backup", () => {
  it("is accepted only after a restore, and replaces the one that the database has", async () => {
    const { before, lost } = await hostWithLostCertificate(3);
    await rig.db.delete(databaseRestores);
    expect(await refusal(lost)).toContain("HTTP 403 certificate_rejected");
    await restored(hoursAgo(2));
    expect(await refusal(lost)).toContain("HTTP 403 certificate_rejected");
    await restored(hoursAgo(5), hoursAgo(4));
    expect(await refusal(lost)).toContain("HTTP 403 certificate_rejected");
    await restored(hoursAgo(5));
    await kept.connect(lost, {});
    expect(await stored(lost)).toMatchObject({ generation: 1, replacedAt: null, revokedAt: null });
    expect((await stored(before))?.replacedAt).not.toBeNull();
    expect((await eventsOf(lost.nodeId)).map(({ message }) => message)).toContainEqual(
      expect.stringContaining("restored from an older backup"),
    );
    const next = await rig.renew(lost, await makeKey());
    await kept.connect(next, {});
  });

  it("is accepted by the first hello of a long poll too, and by nothing before it", async () => {
    const { before, lost } = await hostWithLostCertificate(3);
    await restored(hoursAgo(5));
    const path = `/internal/v1/nodes/${lost.nodeId}`;
    const open = await rig.ask("POST", `${path}/sessions`, { as: before, body: { hello: helloOf(before) } });
    const { session_epoch } = (open.json as { welcome: { session_epoch: number } }).welcome;
    const wait = `${path}/tasks/wait?session_epoch=${session_epoch}&timeout_ms=0`;
    const frames = { session_epoch, frames: [] };
    for (const [as, status] of [
      [lost, 409],
      [before, 200],
    ] as const) {
      expect((await rig.ask("GET", wait, { as })).status).toBe(status);
      expect((await rig.ask("POST", `${path}/frames`, { as, body: frames })).status).toBe(status);
    }
    expect(await stored(lost)).toBeUndefined();
    const opened = await rig.ask("POST", `${path}/sessions`, { as: lost, body: { hello: helloOf(lost) } });
    expect(opened.status).toBe(200);
    expect(await stored(lost)).toMatchObject({ replacedAt: null, firstUsedAt: expect.any(Date) });
  });

  it("makes the enrollment token used with which the host got it", async () => {
    await restored(hoursAgo(1));
    const nodeId = await rig.addNode("enrolling");
    const token = await rig.issueToken(nodeId);
    const key = await makeKey();
    const answer = await rig.enroll(await rig.enrollRequest(nodeId, token, key));
    const { certificate_pem: certPem } = answer.json as { certificate_pem: string };
    const identity = { nodeId, generation: 1, certPem, keyPem: key.keyPem };
    await lose(identity);
    await rig.db.execute(
      sql`update enrollment_tokens set used_at = null, used_key_sha256 = null, created_at = now() - interval '2 hours' where node_id = ${nodeId}`,
    );
    await restored(hoursAgo(1), new Date(Date.now() + 1_000));
    await kept.connect(identity, {});
    const thief = await rig.enroll(await rig.enrollRequest(nodeId, token, await makeKey()));
    expect(thief).toMatchObject({ status: 401, code: "token_used" });
  });

  it("counts as replaced if the host has a later one, so that a second host is found", async () => {
    const { before, lost } = await hostWithLostCertificate(2);
    const copied = await rig.expired(before, 4 - 24);
    await lose(copied);
    await restored(hoursAgo(5));
    await kept.connect(lost, {});
    expect(await refusal(copied)).toContain("certificate_replaced");
    await rig.db
      .update(nodeCertificates)
      .set({ replacedSeenAt: sql`now() - interval '61 seconds'` })
      .where(eq(nodeCertificates.serial, serialIn(copied)));
    expect(await refusal(copied)).toContain("certificate_barred");
    expect(await refusal(lost)).toContain("certificate_barred");
  });

  it("is refused if the node was revoked or enrolled again since, and if another CA is in force", async () => {
    const { lost } = await hostWithLostCertificate(3);
    await restored(hoursAgo(5), hoursAgo(1));
    const other = await openCertificateAuthority(new MemorySecrets());
    await rig.restart({ ca: { ...rig.ca, issuerPem: other.caPem } });
    expect(await refusal(lost)).toContain("certificate_rejected");
    await rig.restart();
    await rig.db.execute(sql`update nodes set generation = 2 where id = ${lost.nodeId}`);
    await rig.issueToken(lost.nodeId, { generation: 2 });
    expect(await refusal(lost)).toContain("certificate_rejected");
    const { before: kept2, lost: revoked } = await hostWithLostCertificate(3);
    await rig.db
      .update(nodeCertificates)
      .set({ revokedAt: new Date() })
      .where(eq(nodeCertificates.nodeId, kept2.nodeId));
    expect(await refusal(revoked)).toContain("certificate_rejected");
    expect(await stored(revoked)).toBeUndefined();
  });
});

describe("a host that got another generation after the backup", () => {
  it("cannot connect, is told to an operator once, and needs one enrollment", async () => {
    const { before, lost } = await hostWithLostCertificate(3);
    const host = { ...lost, generation: 2 };
    const first = await restored(hoursAgo(5));
    for (const _try of [1, 2]) {
      const agent = await SocketAgent.open(rig, host);
      agent.send(helloOf(host));
      expect(await agent.closing()).toMatchObject({ reason: "bad_frame" });
    }
    const body = { hello: helloOf(host) };
    const polled = await rig.ask("POST", `/internal/v1/nodes/${host.nodeId}/sessions`, { as: host, body });
    expect(polled).toMatchObject({ status: 403, code: "certificate_rejected" });
    const told = expect.stringMatching(/generation 2, and the node has generation 1\..*\(re-enroll-node\)/);
    const events = await eventsOf(host.nodeId);
    expect(events.filter(({ type }) => type === "generation_differs")).toMatchObject([{ message: told }]);
    expect(events.map(({ type }) => type)).not.toContain("certificate_renewed");
    const connected = (await readConditions(rig.db, host.nodeId, 1)).find(({ type }) => type === "agent.connected");
    expect(connected).toMatchObject({ status: "False", reason: "OtherGeneration", message: told });
    expect([await stored(lost), (await stored(before))?.replacedAt]).toEqual([undefined, null]);

    // An agent keeps its identity of a generation, so the new generation must be none that a host got after the backup.
    const generation = await rig.inTx((tx) => nextGeneration(tx, host.nodeId));
    expect(generation).toBe(first);
    await kept.connect(await rig.enrollNode(host.nodeId, generation), {});
    expect(await rig.inTx((tx) => nextGeneration(tx, host.nodeId))).toBe(generation + 1);
    const second = await restored(hoursAgo(5), new Date(Date.now() + HOUR));
    expect(second).toBeGreaterThan(generation + 1);
    expect(await rig.inTx((tx) => nextGeneration(tx, host.nodeId))).toBe(second);
  });

  it("gets no certificate by a renewal that names the other generation, and is told to an operator", async () => {
    const { before, lost } = await hostWithLostCertificate(3);
    await restored(hoursAgo(5));
    const path = `/internal/v1/nodes/${lost.nodeId}/certificate`;
    const body = { csr_pem: await (await makeKey()).csr(nodeUri(lost.nodeId)) };
    const refused = await rig.ask("POST", `${path}?generation=2`, { as: lost, body });
    expect(refused).toMatchObject({ status: 403, code: "certificate_rejected" });
    const connected = (await readConditions(rig.db, lost.nodeId, 1)).find(({ type }) => type === "agent.connected");
    expect(connected?.reason).toBe("OtherGeneration");
    expect([await stored(lost), (await stored(before))?.replacedAt]).toEqual([undefined, null]);
    expect((await rig.ask("POST", `${path}?generation=1`, { as: lost, body })).status).toBe(200);
    expect(await stored(lost)).toMatchObject({ firstUsedAt: expect.any(Date), replacedAt: null });
  });

  it("gets a certificate by a renewal of an older agent, which names no generation, and then needs one enrollment too", async () => {
    const { lost } = await hostWithLostCertificate(3);
    const first = await restored(hoursAgo(5));
    const renewed = await rig.renew({ ...lost, generation: 2 }, await makeKey());
    expect(renewed.answer).toMatchObject({ status: 200, json: { generation: 1 } });
    expect(await rig.inTx((tx) => nextGeneration(tx, lost.nodeId))).toBe(first);
  });
});

describe("a node whose host enrolled after the backup", () => {
  it.each(["manual", "adopted"] as const)("goes on as after the enrollment if it is of the mode %s", async (mode) => {
    const nodeId = await rig.addNode("bootstrap_issued");
    await rig.db.update(nodes).set({ onboardingMode: mode }).where(eq(nodes.id, nodeId));
    const identity = await rig.enrollNode(nodeId, 1);
    await lose(identity);
    await rig.db.update(nodes).set({ status: "bootstrap_issued" }).where(eq(nodes.id, nodeId));
    await rig.db.delete(nodeConditions).where(eq(nodeConditions.nodeId, nodeId));
    await rig.db.execute(
      sql`update enrollment_tokens set created_at = now() - interval '2 hours' where node_id = ${nodeId}`,
    );
    await restored(hoursAgo(1), new Date(Date.now() + 1_000));
    await kept.connect(identity, {});
    expect(await readNode(rig.db, nodeId)).toMatchObject({ status: "enrolling" });
    const waits = (await readConditions(rig.db, nodeId, 1)).find(({ type }) => type === "adoption.identity");
    expect(waits?.reason).toBe(mode === "adopted" ? "AgentEnrolled" : undefined);
  });
});

describe("a task that the agent worked on after the backup", () => {
  async function taskOf(nodeId: NodeId, set: Partial<typeof tasks.$inferInsert>): Promise<TaskId> {
    // One transaction makes the task and restores the database, so that no sweep of the hub finds the ended lease before the restore.
    return rig.inTx(async (tx) => {
      const { task } = await enqueueTask(tx, {
        nodeId,
        type: "node.heartbeat_check",
        input: { nonce: "n" },
        idempotencyKey: crypto.randomUUID(),
        deadlineSeconds: 3_600,
      });
      await tx
        .update(tasks)
        .set({ leaseUntil: hoursAgo(1), ...set })
        .where(eq(tasks.id, task.id));
      await extendHeldTasks(tx);
      return task.id;
    });
  }
  const row = async (id: TaskId): Promise<Task | null> => readTask(rig.db, id);

  it.each([
    ["a running task with the same delivery", { state: "running", epoch: 2, attempts: 2 }, 2],
    ["an offered task with the same delivery", { state: "offered", epoch: 2, attempts: 2 }, 2],
    ["a queued task with a later delivery", { state: "queued", epoch: 0 }, 1],
    ["a running task with a later delivery", { state: "running", epoch: 1, attempts: 1 }, 3],
  ] as const)("fails if the agent has reported its result: %s", async (_case, before, epoch) => {
    const identity = await rig.enrolled();
    const id = await taskOf(identity.nodeId, before);
    // Without the longer lease, the hub would queue the task for another delivery before its agent is back.
    expect((await rig.inTx((tx) => lapseTasks(tx, id))).length).toBe(0);
    const agent = await kept.connect(identity, { hello: { journal: [{ task_id: id, epoch, state: "reported" }] } });
    await until("the task has failed", async () => ((await row(id))?.state === "failed" ? true : undefined));
    expect(await row(id)).toMatchObject({ errorCode: "result_lost", epoch });
    const next = await taskOf(identity.nodeId, {});
    await rig.db.execute(sql`select pg_notify('muster_tasks', ${identity.nodeId})`);
    expect((await agent.next("task.offer")).order.task_id).toBe(next);
  });

  it("stays queued if the delivery that the agent reported had failed before the backup", async () => {
    const identity = await rig.enrolled();
    const id = await taskOf(identity.nodeId, { state: "queued", epoch: 1, attempts: 1 });
    const journal = [{ task_id: id, epoch: 1, state: "reported" as const }];
    const agent = await kept.connect(identity, { hello: { journal } });
    expect((await agent.next("task.offer")).order).toMatchObject({ task_id: id, epoch: 2 });
  });

  it.each<JournalState>(["received", "started", "finished"])(
    "is one delivery with the agent, whose result counts, if the agent's journal says %s",
    async (state) => {
      const identity = await rig.enrolled();
      const id = await taskOf(identity.nodeId, { state: "queued", epoch: 1, attempts: 1 });
      const agent = await kept.connect(identity, { hello: { journal: [{ task_id: id, epoch: 3, state }] } });
      await until("the hub follows", async () => ((await row(id))?.state === "running" ? true : undefined));
      expect(await row(id)).toMatchObject({ epoch: 3, attempts: 3 });
      const result = { nonce: "n", boot_id: "boot-1", uptime_seconds: 5, agent_version: "1.0.0" };
      agent.send({ type: "task.result", task_id: id, epoch: 3, reply: { ok: true, result } });
      await agent.next("task.result_ack");
      expect(await row(id)).toMatchObject({ state: "succeeded" });
    },
  );
});
