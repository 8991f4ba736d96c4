import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { revokeCertificates } from "../../../hub/db/queries/node-certificates.ts";
import { removeOutdated } from "../../../hub/db/queries/retention.ts";
import { nodes } from "../../../hub/db/schema/index.ts";
import { recordTaskOf } from "../../../hub/node/prepare-record.ts";
import { SiteId } from "../../../shared/ids.ts";
import { canonicalJson } from "../../../shared/json.ts";
import { readRecord, type SanitizationRecord } from "../../../shared/sanitization-record.ts";
import { AgentHosts } from "../../support/agent-hosts.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";
import { TurnoverHost } from "../../support/turnover-rig.ts";
import { until } from "../../support/until.ts";

let rig: GatewayRig;
let host: TurnoverHost;
const hosts = new AgentHosts();
beforeAll(async () => {
  rig = await GatewayRig.start({ heartbeatMinTtlMs: 3_000 });
  host = await TurnoverHost.start(rig, hosts);
});
afterAll(async () => {
  await hosts.end();
  await rig.stop();
});

const recordOf = (text: string): SanitizationRecord => {
  const record = readRecord(text);
  if (typeof record === "string") throw new Error(record);
  return record;
};
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

describe("a turnover with a real agent", () => {
  it("ends with a record that the agent signed, the hub countersigned and the node's chain contains", async () => {
    const first = await host.turnOver();
    expect(first).toMatchObject({ sequence: 1, verdict: "clean", signedByAgent: true, orderKey: rig.signer.publicKey });
    const place = { room: "A", rack: "r7", unit: 12 };
    const siteId = SiteId.parse(randomUUID());
    await rig.db.execute(sql`insert into maas_sites (id, name, region_code, api_base_url, pxe_iface, pxe_vlan_vid, node_pxe_iface, deploy_user,
        deploy_ssh_iface, upstream_dns_servers) values (${siteId}, 'dc1', 'r1', 'http://maas', 'e', 1, 'e', 'ubuntu', 'e', '{}')`);
    await rig.db
      .update(nodes)
      .set({ ...place, siteId, assetTag: "INV-4711" })
      .where(eq(nodes.id, host.nodeId));
    const second = await host.turnOver();
    expect(recordOf(second.text)).toMatchObject({ sequence: 2, previous_sha256: first.recordSha256, reasons: [] });
    expect(recordOf(second.text)).toMatchObject({
      node: { property_number: "INV-4711" },
      location: { site: "dc1", ...place },
    });
    expect(recordOf(first.text).node).not.toHaveProperty("property_number");
    expect(second.recordSha256).toBe(sha256(second.text));
    expect(JSON.parse(second.countersignature)).toMatchObject({
      record_sha256: second.recordSha256,
      agent_signature: second.agentSignature,
      sequence: 2,
    });
  });

  it("stores a record once, however often it is asked to", async () => {
    const { text } = await host.prepare([await host.clean()]);
    const signing = await host.sign(text);
    const [first, again] = [await host.store(text, signing), await host.store(text, signing)];
    expect(again).toEqual(first);
  });

  it("has two records at once only one after the other: the later one is prepared again", async () => {
    const tasks = [await host.clean()];
    const [one, other] = [await host.prepare(tasks), await host.prepare(tasks)];
    const [signed, late] = [await host.sign(one.text), await host.sign(other.text)];
    const answers = await Promise.all([host.store(one.text, signed), host.store(other.text, late)]);
    expect(answers.filter((answer) => "stored" in answer)).toHaveLength(1);
    expect(answers.filter((answer) => "refused" in answer)).toMatchObject([{ refused: "chain_moved" }]);
  });

  it.each([
    ["another record", (record: SanitizationRecord) => ({ ...record, trust: "reimaged" as const })],
    ["another node", (record: SanitizationRecord) => ({ ...record, node: { ...record.node, id: randomUUID() } })],
  ])("does not accept the agent's signature of %s", async (_, change) => {
    const { text, record } = await host.prepare([await host.clean()]);
    const signing = await host.sign(canonicalJson({ ...record, record_id: randomUUID() }));
    expect(signing.state).toBe("succeeded");
    expect(await host.store(text, signing)).toMatchObject({ refused: "signature_wrong" });
    const changed = canonicalJson(change(record));
    const foreign = await host.store(changed, await host.sign(text));
    expect(foreign).not.toHaveProperty("stored");
  });

  it("does not accept another agent's signature, or one of a revoked certificate", async () => {
    const other = await TurnoverHost.start(rig, hosts);
    const { text } = await other.prepare([await other.clean()]);
    const signing = await other.sign(text);
    const own = await host.prepare([await host.clean()]);
    const stolen = await host.sign(own.text);
    expect(await other.store(text, stolen)).toMatchObject({ refused: "signature_wrong" });
    await rig.inTx((tx) => revokeCertificates(tx, other.nodeId, "all", "stolen"));
    expect(await other.store(text, signing)).toMatchObject({ refused: "signature_wrong" });
    expect((await other.prepare([])).record).toMatchObject({ agent: null, signed_by_agent: false });
  });

  it("is refused by the agent if the hub has another result than the agent reported", async () => {
    const task = await host.clean();
    const altered = { ...task, result: { ...(task.result as object), sessions_closed: 7 } };
    const signing = await host.sign((await host.prepare([altered])).text);
    expect(signing).toMatchObject({ state: "failed", errorCode: "result_differs" });
    expect(signing.errorMessage).toContain(task.id);
  });

  it("is refused by the agent if the record is about another node or another certificate", async () => {
    const { record } = await host.prepare([]);
    const of = async (more: object) => (await host.sign(canonicalJson({ ...record, ...more }))).errorCode;
    expect(await of({ node: { ...record.node, id: randomUUID() } })).toBe("foreign_node");
    expect(await of({ agent: { ...record.agent, certificate_serial: "1" } })).toBe("agent_differs");
    expect(await of({ format: "muster-sanitization/2" })).toBe("malformed");
  });

  it("says which results a newly installed agent cannot confirm, and is then not clean", async () => {
    const before = await host.clean();
    await host.forget();
    const { text } = await host.prepare([before]);
    const signing = await host.sign(text);
    expect(signing.result).toMatchObject({ unknown_tasks: [before.id] });
    expect(await host.store(text, signing)).toMatchObject({ refused: "tasks_unconfirmed", tasks: [before.id] });
    const again = await host.prepare([before], { unconfirmed: [before.id] });
    expect(again.record).toMatchObject({ verdict: "incomplete", reasons: [{ code: "task_unconfirmed" }] });
    const stored = await host.store(again.text, await host.sign(again.text));
    expect(stored).toMatchObject({ stored: { verdict: "incomplete", signedByAgent: true } });
  });

  it("without an agent has a record that no agent signed, which is never clean", async () => {
    const { text, record } = await host.prepare([await host.clean()], { unsigned_reason: "the agent did not answer" });
    expect(record).toMatchObject({ agent: null, signed_by_agent: false, verdict: "incomplete", claims: [] });
    expect(await host.store(text, null)).toMatchObject({ stored: { signedByAgent: false, agentSignature: null } });
    const signed = await host.prepare([await host.clean()]);
    await expect(host.store(signed.text, null)).rejects.toThrow("do not fit each other");
  });

  it("is signed by the agent that comes back after it was killed in the task", async () => {
    const { text } = await host.prepare([await host.clean()]);
    host.agent.kill("SIGSTOP");
    const task = await host.queue("node.sign_record", { text });
    await until("the order to be offered", async () => {
      const { rows } = await rig.db.execute<{ state: string }>(sql`select state from tasks where id = ${task.id}`);
      return rows[0]?.state === "offered" ? true : undefined;
    });
    host.agent.kill("SIGKILL");
    await host.agent.gone;
    host.restart();
    const signing = await host.ended(task);
    expect(signing).toMatchObject({ state: "succeeded", errorCode: null });
    expect(await host.store(text, signing)).toMatchObject({ stored: { verdict: "clean" } });
  });

  it("is signed once and rightly, however often the agent is killed while it has the task", async () => {
    const { text, record } = await host.prepare([await host.clean()]);
    const task = await host.queue("node.sign_record", { text });
    // The test kills the agent before, during and after the task `node.sign_record`, which must succeed nevertheless.
    for (const pauseMs of [0, 20, 60, 150]) {
      await sleep(pauseMs);
      host.agent.kill("SIGKILL");
      await host.agent.gone;
      host.restart();
    }
    const signing = await host.ended(task);
    expect(signing).toMatchObject({ state: "succeeded" });
    expect(await host.store(text, signing)).toMatchObject({
      stored: { recordId: record.record_id, sequence: record.sequence },
    });
  });

  it("can have a record of the largest size", async () => {
    const item = (n: number) => ({
      item: `item_${n}`,
      status: "found" as const,
      names: Array.from({ length: 100 }, (_, name) => `"\\ file ${name}`),
      more: 0,
      reason: null,
    });
    const items = Array.from({ length: 128 }, (_, n) => item(n));
    const { text, record } = await host.prepare([await host.clean()], { residue: { has_baseline: true, items } });
    expect(Buffer.byteLength(text)).toBeGreaterThan(32 * 1024);
    expect(record.cut).toMatchObject([{ what: "residue_names", of: 12_800 }]);
    const named = record.residue?.items.flatMap(({ names }) => names).length ?? 0;
    const unnamed = record.residue?.items.reduce((sum, { more }) => sum + more, 0) ?? 0;
    expect(named + unnamed).toBe(12_800);
    expect(await host.store(text, await host.sign(text))).toMatchObject({ stored: { verdict: "not_clean" } });
  });

  it("still confirms its results after it was killed between the tasks", async () => {
    const task = await host.clean();
    host.agent.kill("SIGKILL");
    await host.agent.gone;
    host.restart();
    const { text } = await host.prepare([task]);
    expect((await host.sign(text)).result).toMatchObject({ unknown_tasks: [] });
  });
});

describe("the facts of a task in a record", () => {
  it("are the result and steps of a task that succeeded, and the error of any other task", async () => {
    const task = await host.clean();
    expect(recordTaskOf(task)).toMatchObject({ error: null, result_sha256: sha256(canonicalJson(task.result)) });
    const failed = { ...task, state: "failed" as const, errorCode: "odd code!", result: null };
    expect(recordTaskOf(failed)).toMatchObject({ error: "odd_code_", result_sha256: null, steps: [] });
    expect(recordTaskOf({ ...failed, errorCode: null, state: "expired" })).toMatchObject({ error: "expired" });
  });
});

describe("the table of sanitization records", () => {
  it.each([
    ["a change", sql`update sanitization_records set verdict = 'clean'`],
    ["a removal", sql`delete from sanitization_records`],
    ["a truncation", sql`truncate sanitization_records`],
    [
      "an upsert",
      sql`insert into sanitization_records select * from sanitization_records limit 1
      on conflict (record_id) do update set verdict = 'clean'`,
    ],
  ])("refuses %s, also for its owner and for a session of a replica", async (_, statement) => {
    const { rows } = await rig.db.execute<{ owner: boolean; rows: number }>(sql`
      select pg_get_userbyid(c.relowner) = current_user as owner, (select count(*)::int from sanitization_records) as rows
      from pg_class c where c.oid = 'sanitization_records'::regclass`);
    expect(rows[0]).toMatchObject({ owner: true });
    expect(rows[0]?.rows).toBeGreaterThan(0);
    for (const role of ["origin", "replica"])
      await expect(
        rig.inTx(async (tx) => {
          await tx.execute(sql.raw(`set local session_replication_role = ${role}`));
          await tx.execute(statement);
        }),
      ).rejects.toMatchObject({ cause: { message: "sanitization records are never changed or removed" } });
  });

  it("keeps its rows when the node is gone and retention removes everything that is old", async () => {
    const gone = await TurnoverHost.start(rig, hosts);
    const { recordId } = await gone.turnOver();
    await gone.agent.stop();
    await rig.db.execute(
      sql`update nodes set status = 'deleted', updated_at = now() - interval '9 years' where id = ${gone.nodeId}`,
    );
    await removeOutdated(rig.db, { records: 1, history: 1 });
    const { rows } = await rig.db.execute<{ nodes: number; records: number }>(sql`
      select (select count(*)::int from nodes where id = ${gone.nodeId}) as nodes,
        (select count(*)::int from sanitization_records where record_id = ${recordId}) as records`);
    expect(rows).toEqual([{ nodes: 0, records: 1 }]);
  });

  it("holds no clean record that no agent signed, and no two records with one number of a node", async () => {
    const { recordId } = await host.turnOver();
    const copy = (change: string) =>
      rig.db.execute(
        sql.raw(`insert into sanitization_records select (jsonb_populate_record(r, '${change}')).* from sanitization_records r
          where record_id = '${recordId}'`),
      );
    const id = randomUUID();
    await expect(
      copy(
        `{"record_id":"${id}","sequence":999,"signed_by_agent":false,"agent_signature":null,"agent_certificate_pem":null}`,
      ),
    ).rejects.toMatchObject({ cause: { constraint: "sanitization_records_unsigned_check" } });
    await expect(copy(`{"record_id":"${id}"}`)).rejects.toMatchObject({
      cause: { constraint: "sanitization_records_chain_key" },
    });
  });
});
