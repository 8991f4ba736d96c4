import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { namedSecrets } from "../../../hub/copy-secrets/named-secrets.ts";
import { sql } from "../../../hub/db/orm.ts";
import { readTask } from "../../../hub/db/queries/task-reads.ts";
import { enqueueTask } from "../../../hub/db/queries/tasks.ts";
import { HubAuthority } from "../../../hub/gateway/hub-authority.ts";
import { periodically } from "../../../hub/timing/periodically.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { TRUST_PATH } from "../../../shared/trust.ts";
import { AgentHosts, hubOf, prepareHost } from "../../support/agent-hosts.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import type { Child } from "../../support/child.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";
import { hostRows } from "../../support/host-rows.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

const PATH = "/api/v1/admin/authority";
const SETTLE_MS = 500;
let api: ApiHarness;
/** Two hubs share a database and a secret store, and poll the database and the store for the current keys. */
let hubs: readonly [HubAuthority, HubAuthority];
let rig: GatewayRig;
let secondPort: number;
let looking: ReturnType<typeof periodically>;
const hosts = new AgentHosts();

const of = (authority: HubAuthority) => ({
  ca: authority.ca,
  signer: authority.signer,
  trustChain: () => authority.chain,
});
beforeAll(async () => {
  api = await startApi();
  const { db } = api.database.database;
  const options = { db, secrets: api.secrets, settleMs: SETTLE_MS };
  hubs = [await HubAuthority.open(options), await HubAuthority.open(options)];
  rig = await GatewayRig.start({ ...of(hubs[0]), heartbeatMinTtlMs: 3_000 }, api.database);
  secondPort = (await rig.secondHub(of(hubs[1]))).port;
  looking = periodically({
    everyMs: 100,
    turn: async () => void (await Promise.all(hubs.map((hub) => hub.refresh()))),
    log: quietLog,
    failed: "the hubs could not read their keys",
  });
});
afterAll(async () => {
  await looking?.close();
  await hosts.end();
  await rig.listener.close();
  await api.close();
});

/** Makes a host with the files that a first boot would write at present, but without a running agent. */
async function host() {
  const nodeId = await rig.addNode("active");
  const folder = hosts.add();
  prepareHost(folder, hubOf(rig), { nodeId, token: await rig.issueToken(nodeId) });
  const start = (): Child => hosts.start(folder);
  return { nodeId, folder, start, log: () => folder.read("agent.log") };
}
const { sessionOf } = hostRows(() => rig.db);
const knows = (nodeId: NodeId, sequence: number) =>
  until(`the host to know statement ${sequence}`, async () =>
    (await sessionOf(nodeId))?.trustSequence === sequence ? true : undefined,
  );
/** Expects that the host carries out an order signed with the hub's current key, which proves that the host trusts the key. */
async function obeys(nodeId: NodeId): Promise<void> {
  const { task } = await rig.inTx((tx) =>
    enqueueTask(tx, {
      nodeId,
      type: "node.heartbeat_check",
      input: { nonce: "n" },
      idempotencyKey: `test:${nodeId}:${performance.now()}`,
      deadlineSeconds: 600,
    }),
  );
  const ended = await until("the task to end", async () => {
    const now = await readTask(rig.db, task.id);
    return now?.finishedAt == null ? undefined : now;
  });
  expect(ended).toMatchObject({ state: "succeeded", errorCode: null });
}
/** Returns true if a client that trusts only the CA `caPem` accepts the hub's certificate. */
const isShown = (caPem: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connectTls({ host: "127.0.0.1", port, ca: caPem, servername: "localhost" }, () => end(true));
    const end = (shown: boolean): void => {
      socket.destroy();
      resolve(shown);
    };
    socket.on("error", () => end(false));
  });
const rotate = (verb: "" | "/finish" | "/abort", more = {}) =>
  api.ask("POST", `${PATH}/rotation${verb}`, { reason: "test", ...more });
const finished = (generation: number) =>
  until("both hubs to follow", () => (hubs.every((hub) => hub.generation === generation) ? true : undefined));
const settled = (sequence: number) =>
  until("hosts to be told", () => (hubs[0].chain.length === sequence ? true : undefined));

describe("a rotation of CA and order key", () => {
  it("does not disturb running hosts, and readmits hosts that were off during all of it", async () => {
    const [running, off, late] = [await host(), await host(), await host()];
    running.start();
    const away = off.start();
    for (const one of [running, off])
      await until("a session", async () => ((await sessionOf(one.nodeId))?.state === "open" ? true : undefined));
    await obeys(off.nodeId);
    await away.stop();
    const oldCa = rig.ca.caPem;

    expect(await rotate("")).toMatchObject({ status: 201, body: { generation: 2, phase: "announced" } });
    await knows(running.nodeId, 1);
    expect(rig.ca.caPem.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    expect((await rotate("")).status).toBe(409);
    const shown = (await api.ask("GET", PATH)).body;
    expect(shown).toMatchObject({ generation: 1, hosts: 2, informed: 1, missing: [{ id: off.nodeId }] });
    await obeys(running.nodeId);

    expect((await rotate("/finish")).problem.detail).toContain("1 of 2 hosts");
    expect(await rotate("/finish", { force: true })).toMatchObject({ body: { generation: 2, phase: "in_force" } });
    await finished(2);
    await settled(2);
    const newCa = hubs[0].ca.issuerPem;
    for (const port of [rig.listener.port, secondPort]) {
      await until("the hub to show the new CA", async () => ((await isShown(newCa, port)) ? true : undefined));
      expect(await isShown(oldCa, port)).toBe(false);
    }
    await knows(running.nodeId, 2);
    await obeys(running.nodeId);

    // The host `off` was switched off during the rotation of the hub's keys. The host `off` has only a certificate of the old CA, and trusts only the
    // old CA and the old order key. The host `late` boots for the first time after the rotation of the hub's keys.
    off.start();
    late.start();
    for (const one of [off, late]) {
      await knows(one.nodeId, 2);
      await obeys(one.nodeId);
    }
    expect(off.log()).toContain("by its old key's word");
    const kept = JSON.parse(running.folder.read("var/lib/muster/agent/trust.json"));
    expect(kept).toMatchObject({ sequence: 2, next: null, current: { ca_pem: newCa } });
    expect((await api.ask("GET", PATH)).body).toMatchObject({ generation: 2, hosts: 3, informed: 3, next: null });

    // A new host gets only the hub's new keys, and reports that it knows the newest statement about the hub's keys.
    const fresh = await host();
    fresh.start();
    await knows(fresh.nodeId, 2);
    await obeys(fresh.nodeId);
  });

  it("is announced to hosts later than hubs apply it, so no order carries a key that hosts have dropped", async () => {
    const options = { db: rig.db, secrets: api.secrets };
    const kindsOf = ({ chain }: HubAuthority) => chain.map(({ kind }) => kind);
    const early = await HubAuthority.open({ ...options, settleMs: 3_600_000 });
    expect([early.generation, kindsOf(early)]).toEqual([2, ["announce"]]);
    const late = await HubAuthority.open({ ...options, settleMs: 0 });
    expect([late.generation, kindsOf(late)]).toEqual([2, ["announce", "finish"]]);
  });

  it("is forgotten by the hosts after an abort, and its generation number is not used again", async () => {
    const one = await host();
    one.start();
    expect(await rotate("")).toMatchObject({ body: { generation: 3 } });
    await knows(one.nodeId, 3);
    expect(await rotate("/abort")).toMatchObject({ body: { generation: 3, phase: "aborted" } });
    await knows(one.nodeId, 4);
    expect(JSON.parse(one.folder.read("var/lib/muster/agent/trust.json"))).toMatchObject({ next: null });
    expect((await rotate("/finish")).problem.detail).toContain("No rotation is under way");
    expect((await api.ask("GET", PATH)).body).toMatchObject({ generation: 2, sequence: 4 });
    await obeys(one.nodeId);
  });

  it("that broke off after its keys were made starts again with the same keys", async () => {
    const prepared = await hubs[0].prepareNext();
    expect(await hubs[1].prepareNext()).toEqual(prepared);
    expect(prepared.keys?.generation).toBe(4);
    expect(await rotate("")).toMatchObject({ body: { generation: 4 } });
    const { body } = await api.ask("GET", PATH);
    expect(body.next.order_key).toBe(prepared.keys?.order_key);
    await rotate("/abort");
  });

  it("is audited, published as an event, copied by copy-secrets, and public only as signed statements", async () => {
    const { rows } = await rig.db.execute<{ action: string }>(
      sql`select distinct action from audit_logs where target = 'authority' order by action`,
    );
    expect(rows.map((row) => row.action)).toEqual([
      "abortAuthorityRotation",
      "finishAuthorityRotation",
      "startAuthorityRotation",
    ]);
    const events = await api.ask("GET", "/api/v1/admin/events?limit=100");
    expect(JSON.stringify(events.body)).toContain("authority.rotation.changed");
    const named = (await namedSecrets(rig.db)).filter(({ path }) => /-\d$/.test(path));
    expect(named).toEqual([
      { path: "kv/muster/certificate-authority-2", needed: true },
      { path: "kv/muster/certificate-authority-3", needed: false },
      { path: "kv/muster/certificate-authority-4", needed: false },
      { path: "kv/muster/task-signing-key-2", needed: true },
      { path: "kv/muster/task-signing-key-3", needed: false },
      { path: "kv/muster/task-signing-key-4", needed: false },
    ]);
    const told = await rig.ask("GET", TRUST_PATH);
    expect(told.status).toBe(200);
    expect(told.text).not.toContain("PRIVATE");
    const diagnostics = await api.ask("GET", "/api/v1/admin/diagnostics");
    expect(JSON.stringify(diagnostics.body)).toContain('"kind":"announce"');
  });
});
