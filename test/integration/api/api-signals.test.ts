/** Signals that name their node themselves: every form, every way to name a node, and what becomes of each signal. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { KEPT_OF_A_NODE, KEPT_WITHOUT_NODE } from "../../../hub/db/kept.ts";
import { eq, sql } from "../../../hub/db/orm.ts";
import { maasMachines, nodeInventories, nodeMaasState, nodes, receivedSignals } from "../../../hub/db/schema/index.ts";
import { signatureOf } from "../../../hub/events/webhook-signature.ts";
import { applyParked } from "../../../hub/node/parked-signals.ts";
import { type NodeId, SiteId } from "../../../shared/ids.ts";
import { Secret } from "../../../shared/secret.ts";
import { type Answer, type ApiHarness, seedApi, startApi, startApiWithSite } from "../../support/api-harness.ts";
import { addNode as addSiteNode } from "../../support/site-nodes.ts";

const SIGNALS = "/api/v1/readiness/signals";
const NODES = "/api/v1/admin/nodes";

let api: ApiHarness;
let siteId: SiteId;
let otherSite: SiteId;
let url: string;
/** A provisioning system that is limited to the first site. */
let limited: { readonly authorization: string };

beforeAll(async () => {
  ({ api, siteId } = await startApiWithSite());
  otherSite = SiteId.parse((await seedApi(api, "dc2")).siteId);
  url = await api.listen();
  const body = { name: "fabric-dc1", role: "provisioner", site_ids: [siteId], expires_in_days: 1 };
  limited = { authorization: `Bearer ${(await api.ask("POST", "/api/v1/admin/tokens", body)).body.token}` };
});
afterAll(() => api.close());

const db = () => api.database.database.db;
const newName = () => `n-${randomUUID().slice(0, 8)}`;
async function addNode(hostname = newName(), at = siteId): Promise<NodeId> {
  const id = await api.database.database.inTx((tx) => addSiteNode(tx, { siteId: at, hostname }));
  await db()
    .update(nodes)
    .set({ generation: 2, generationBeganAt: sql`now() - interval '1 hour'` })
    .where(eq(nodes.id, id));
  return id;
}
const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
const condition = (more: object = {}) => ({
  ...{ type: "fabric.ready", status: "True", reason: "Up", message: "m" },
  observed_at: ago(1),
  ...more,
});
const signal = (node: object, more: object = {}) => ({
  signal_id: randomUUID(),
  node,
  conditions: [condition()],
  ...more,
});
const post = (body: unknown, headers = {}) => api.ask("POST", SIGNALS, body, headers);
async function outcomeOf(body: unknown, headers = {}) {
  const answer = await post(body, headers);
  expect(answer.status, JSON.stringify(answer.problem)).toBe(202);
  return answer.body.results[0];
}
const conditionsOf = async (id: NodeId) => (await api.ask("GET", `${NODES}/${id}`)).body.conditions;
const listed = async (query: string, headers = {}) =>
  (await api.ask("GET", `${SIGNALS}?limit=200&${query}`, undefined, headers)).body.items;

describe("a signal that names its node", () => {
  it("is applied once, shown, audited, and the same in every form", async () => {
    const id = await addNode();
    const one = signal({ id });
    expect(await outcomeOf(one)).toEqual({
      signal_id: one.signal_id,
      outcome: "applied",
      node_id: id,
      node_generation: 2,
      detail: null,
    });
    expect(await conditionsOf(id)).toMatchObject([{ type: "fabric.ready", status: "True", source: "external" }]);
    expect(await outcomeOf(one)).toMatchObject({ outcome: "known", node_id: id });
    const data = { node: { id }, conditions: [{ ...condition({ type: "disk.ok" }), observed_at: undefined }] };
    const event = { specversion: "1.0", id: "1", source: newName(), type: "t", time: ago(2), data };
    const structured = { "content-type": "application/cloudevents+json" };
    expect(await outcomeOf(event, structured)).toMatchObject({ outcome: "applied", signal_id: `${event.source}#1` });
    const binary = {
      "ce-specversion": "1.0",
      "ce-id": "1",
      "ce-source": event.source,
      "ce-type": "t",
      "ce-time": event.time,
    };
    expect(await outcomeOf(data, binary)).toMatchObject({ outcome: "known" });
    const batch = { "content-type": "application/cloudevents-batch+json" };
    const answer = await post([event, { ...event, id: "2", time: ago(1) }, { bad: true }], batch);
    expect(answer.body).toMatchObject({ accepted: 2, refused: 1 });
    expect(answer.body.results.map(({ outcome }: { outcome: string }) => outcome)).toEqual([
      "known",
      "applied",
      "invalid",
    ]);
    expect((await listed(`node_id=${id}`)).map((row: { outcome: string }) => row.outcome)).toEqual(
      Array(3).fill("applied"),
    );
    const { rows } = await api.database.database.pool.query(
      "select details from audit_logs where action = 'postSignals' and details->'signal_ids' ? $1",
      [one.signal_id],
    );
    expect(rows).toMatchObject([{ details: { outcomes: { applied: 1 } } }, { details: { outcomes: { known: 1 } } }]);
  });

  it("finds its node by hostname, MAC address, serial number and MAAS system id", async () => {
    const hostname = newName();
    const id = await addNode(hostname);
    const systemId = `s${hostname}`;
    await db().insert(nodeMaasState).values({ nodeId: id, siteId, maasSystemId: systemId, ipmiIp: "10.0.0.9" });
    await db()
      .insert(nodeInventories)
      .values({ nodeId: id, inventory: { interfaces: [{ mac: "02:AA:00:00:00:01" }] } });
    await db().execute(sql`insert into ${maasMachines} (site_id, system_id, hostname, status, status_name, status_message,
      error_description, power_state, locked, ip_addresses, details) values (${siteId}, ${systemId}, ${hostname}, 6, 'Deployed', '', '',
      'on', false, '{}', '{"macs": ["02:aa:00:00:00:02"], "serial": "SER-1"}')`);
    for (const name of [
      { hostname },
      { hostname, site_id: siteId },
      { mac: "02:aa:00:00:00:01" },
      { mac: "02:aa:00:00:00:02" },
      { serial: "SER-1" },
      { maas_system_id: systemId },
      { maas_system_id: systemId, site_id: siteId },
    ])
      expect(await outcomeOf(signal(name)), JSON.stringify(name)).toMatchObject({ outcome: "applied", node_id: id });
    expect(await outcomeOf(signal({ hostname, site_id: otherSite }))).toMatchObject({ outcome: "parked" });
  });

  it("is refused if several nodes fit, which the answer names, and not if only one is at a site of the sender", async () => {
    const hostname = newName();
    const [one, other] = [await addNode(hostname), await addNode(hostname, otherSite)];
    const refused = await outcomeOf(signal({ hostname }));
    expect(refused).toMatchObject({ outcome: "ambiguous", node_id: null });
    for (const part of [one, other, siteId, otherSite, "site_id"]) expect(refused.detail).toContain(part);
    expect(await outcomeOf(signal({ hostname }), limited)).toMatchObject({ outcome: "applied", node_id: one });
    expect(await conditionsOf(other)).toEqual([]);
  });

  it("is refused with the wrong field if it is the only one, and by itself if it is one of several", async () => {
    const id = await addNode();
    for (const [body, pointer] of [
      [signal({}), "/node"],
      [signal({ id, hostname: "both" }), "/node"],
      [signal({ id }, { conditions: [condition({ type: "agent.healthy" })] }), "/conditions/0/type"],
      [signal({ id }, { signal_id: "with space" }), "/signal_id"],
      [{ signals: [] }, "/signals"],
      [{ signals: Array(101).fill({}) }, "/signals"],
    ] as const)
      expect((await post(body)).problem.errors?.[0]?.pointer).toBe(pointer);
    const { body } = await post({ signals: [signal({ id }), signal({}), 7] });
    expect(body).toMatchObject({ accepted: 1, refused: 2 });
    expect(body.results[1]).toMatchObject({ outcome: "invalid", detail: expect.stringContaining("/node") });
    expect((await post(signal({ id }), { "content-type": "text/plain" })).problem.code).toBe("unsupported_media_type");
  });

  it("is refused by itself for a text that cannot be stored, or as deeply nested JSON, beside the right ones", async () => {
    const id = await addNode();
    const bad = [
      signal({ id }, { conditions: [condition({ message: "\u0000" })] }),
      signal({ id }, { signal_id: `${"a".repeat(335)}\u{1f600}` }),
      signal({ id }, { "\ud83d": 1 }),
    ];
    const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    const text = JSON.stringify({ signals: [...bad, "DEEP", signal({ id })] }).replace('"DEEP"', deep);
    const headers = { ...limited, "content-type": "application/json" };
    const ask = (body: string) => fetch(`${url}${SIGNALS}`, { method: "POST", headers, body });
    const answer = (await (await ask(text)).json()) as Answer["body"];
    expect(answer).toMatchObject({ accepted: 1, refused: 4 });
    expect(answer.results[0].detail).toContain("/conditions/0/message");
    for (const body of [deep, `{"signal_id":"1","node":${deep}}`]) expect((await ask(body)).status).toBe(400);
  });
});

describe("a signal that is not applied is kept and shown", () => {
  const kept = async (id: NodeId, body: ReturnType<typeof signal>, outcome: string) => {
    const before = await conditionsOf(id);
    expect(await outcomeOf(body)).toMatchObject({ outcome, detail: expect.any(String) });
    expect(await conditionsOf(id)).toEqual(before);
    expect(await listed(`outcome=${outcome}`)).toContainEqual(
      expect.objectContaining({ signal_id: body.signal_id, outcome, detail: expect.any(String) }),
    );
  };

  it("if it is stale, early, late, conflicting, or another signal under a used id", async () => {
    const id = await addNode();
    await kept(id, signal({ id }, { generation: 1 }), "stale");
    await kept(id, signal({ id }, { conditions: [condition({ observed_at: ago(120) })] }), "stale");
    await kept(id, signal({ id }, { generation: 3 }), "early");
    const first = signal({ id }, { conditions: [condition({ status: "False", observed_at: ago(5) })] });
    await outcomeOf(first);
    const { observed_at } = first.conditions[0] as { observed_at: string };
    await kept(id, signal({ id }, { conditions: [condition({ observed_at: ago(10) })] }), "late");
    await kept(id, signal({ id }, { conditions: [condition({ observed_at })] }), "conflicting");
    await kept(id, { ...first, conditions: [condition()] }, "reused");
    const inOne = signal({ id }, { generation: 1 });
    const { results } = (await post({ signals: [inOne, inOne, { ...inOne, generation: 3 }] })).body;
    expect(results.map(({ outcome }: { outcome: string }) => outcome)).toEqual(["stale", "known", "reused"]);
  });

  it("if its node is of a foreign site, which the sender does not learn", async () => {
    const [id, hostname] = [await addNode(newName(), otherSite), newName()];
    const [foreign, unknown] = [signal({ id }), signal({ hostname })];
    const [told, parked] = [await outcomeOf(foreign, limited), await outcomeOf(unknown, limited)];
    expect({ ...told, signal_id: "", detail: "" }).toEqual({ ...parked, signal_id: "", detail: "" });
    expect(told).toMatchObject({ outcome: "parked", node_id: null });
    expect(await outcomeOf(foreign, limited)).toMatchObject({ outcome: "known", node_id: null });
    expect(await conditionsOf(id)).toEqual([]);
    expect(await listed("outcome=foreign")).toContainEqual(expect.objectContaining({ signal_id: foreign.signal_id }));
    const own = await listed("sender=fabric-dc1", limited);
    expect(own.map((row: { signal_id: string }) => row.signal_id)).toContain(unknown.signal_id);
    expect(own.map((row: { signal_id: string }) => row.signal_id)).toContain(foreign.signal_id);
    expect((await listed("outcome=foreign", limited)).length).toBe(0);
  });
});

describe("a sender that signs its signals", () => {
  const SENDERS = "/api/v1/readiness/senders";
  const create = async (more: object = {}) => (await api.ask("POST", SENDERS, { name: newName(), ...more })).body;
  const now = () => Math.floor(Date.now() / 1000);
  type Named = { readonly id: string; readonly at?: string };
  async function send(sender: Named, secrets: string[], body: object, more: Record<string, string> = {}) {
    const text = JSON.stringify(body);
    const message = { id: "msg_1", sentAt: Number(more["webhook-timestamp"] ?? now()), body: text };
    const signature = signatureOf(
      secrets.map((one) => new Secret(one)),
      message,
    );
    const headers = {
      "content-type": "application/json",
      "webhook-id": message.id,
      "webhook-timestamp": String(message.sentAt),
      "webhook-signature": signature,
      ...more,
    };
    const answer = await fetch(`${sender.at ?? url}${SIGNALS}?sender=${sender.id}`, {
      method: "POST",
      headers,
      body: text,
    });
    return { status: answer.status, body: (await answer.json()) as Answer["body"] };
  }

  it("needs no token, acts under its own name and at its own sites, and its secret is shown once", async () => {
    const { secret, ...sender } = await create({ site_ids: [siteId] });
    expect(secret).toMatch(/^whsec_/);
    const [own, foreign] = [await addNode(), await addNode(newName(), otherSite)];
    const one = signal({ id: own });
    expect(await send(sender, [secret], one)).toMatchObject({
      status: 202,
      body: { results: [{ outcome: "applied" }] },
    });
    const event = {
      specversion: "1.0",
      id: "1",
      source: "s",
      type: "t",
      time: ago(1),
      data: { node: { id: own }, conditions: one.conditions },
    };
    const typed = { "content-type": "application/cloudevents+json" };
    expect((await send(sender, [secret], event, typed)).body.results[0].outcome).toBe("applied");
    expect((await send(sender, [secret], one)).body.results[0].outcome).toBe("known");
    expect((await send(sender, [secret], signal({ id: foreign }))).body.results[0].outcome).toBe("parked");
    expect(await conditionsOf(foreign)).toEqual([]);
    expect(await listed(`sender=${encodeURIComponent(`sender:${sender.name}`)}`)).toHaveLength(3);
    const { items } = (await api.ask("GET", `${SENDERS}?name=${sender.name}`)).body;
    expect(items).toEqual([{ ...sender, last_used_at: expect.anything() }]);
    const { rows } = await api.database.database.pool.query("select to_jsonb(s) as row from signal_senders s");
    expect(JSON.stringify([items, rows])).not.toContain(secret);
    expect((await api.ask("POST", SENDERS, { name: sender.name })).problem.code).toBe("name_taken");
    const nowhere = { name: newName(), site_ids: [randomUUID()] };
    expect((await api.ask("POST", SENDERS, nowhere)).problem.code).toBe("reference_unknown");
  });

  it("is refused with a wrong, old or missing signature, and stores nothing", async () => {
    const { secret, ...sender } = await create();
    const id = await addNode();
    const other = await create();
    const body = signal({ id });
    for (const refused of [
      await send(sender, [other.secret], body),
      await send({ id: randomUUID() }, [secret], body),
      await send(sender, [secret], body, { "webhook-timestamp": String(now() - 330) }),
      await send(sender, [secret], body, { "webhook-timestamp": String(now() + 330) }),
      await send(sender, [secret], body, { "webhook-signature": "v1,AAAA" }),
      await send(sender, [secret], body, { "webhook-signature": "" }),
      await send(sender, [secret], body, { "webhook-id": "another" }),
    ])
      expect(refused).toMatchObject({ status: 401, body: { code: "unauthenticated" } });
    expect(await listed(`node_id=${id}`)).toEqual([]);
    expect((await send(sender, [other.secret, secret], body)).status).toBe(202);
    expect((await send(sender, [secret], body, { "webhook-timestamp": String(now() - 250) })).status).toBe(202);
  });

  it("is refused with attributes of an event in headers, which the signature does not cover", async () => {
    const [{ secret, ...sender }, id] = [await create(), await addNode()];
    const body = signal({ id });
    const { signal_id: _none, ...data } = body;
    const binary = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t" };
    for (const [sent, headers, pointer] of [
      [data, binary, "/headers/ce-id"],
      [data, { ...binary, "ce-id": "2", "ce-time": ago(1) }, "/headers/ce-time"],
      [body, { "ce-subject": `nodes/${id}` }, "/headers/ce-subject"],
    ] as const) {
      const { status, body: problem } = await send(sender, [secret], sent, headers);
      expect([status, problem.code]).toEqual([400, "validation_failed"]);
      expect(problem.errors).toContainEqual(expect.objectContaining({ pointer }));
    }
    expect(await listed(`node_id=${id}`)).toEqual([]);
  });

  it("keeps its budget when others send wrong signatures under its id", async () => {
    const rate = { burst: 5, perMinute: 1 };
    const other = await startApi({ tokenRates: { request: rate, write: rate } });
    onTestFinished(() => other.close());
    const { secret, ...made } = (await other.ask("POST", SENDERS, { name: newName() })).body;
    const sender = { id: made.id, at: await other.listen() };
    const statusWith = async (key: string) => (await send(sender, [key], signal({ hostname: newName() }))).status;
    expect(await statusWith(secret)).toBe(202);
    for (let n = 0; n < 6; n += 1) expect(await statusWith(`whsec_${btoa(newName())}`)).toBe(401);
    for (const status of [202, 202, 202, 202, 429]) expect(await statusWith(secret)).toBe(status);
  });

  it("is accepted with both secrets in the overlap of a rotation, with the new one after it, and never after its revocation", async () => {
    const { secret: first, ...sender } = await create();
    const id = await addNode();
    const statusWith = async (secret: string) => (await send(sender, [secret], signal({ id }))).status;
    const rotate = (overlap_seconds: number) => api.ask("POST", `${SENDERS}/${sender.id}/rotate`, { overlap_seconds });
    const second = (await rotate(600)).body.secret;
    expect([await statusWith(first), await statusWith(second)]).toEqual([202, 202]);
    const third = (await rotate(0)).body.secret;
    expect([await statusWith(first), await statusWith(second), await statusWith(third)]).toEqual([401, 401, 202]);
    const revoked = await api.ask("POST", `${SENDERS}/${sender.id}/revoke`, { reason: "a test" });
    expect(revoked.body).toMatchObject({ status: "revoked" });
    expect(await statusWith(third)).toBe(401);
    expect((await rotate(0)).problem.code).toBe("conflict");
    const changes = await api.database.database.pool.query(
      "select data->>'change' as change from domain_events where type = 'signal_sender.changed' and subject = $1 order by seq",
      [`signal-senders/${sender.id}`],
    );
    expect(changes.rows.map(({ change }) => change)).toEqual(["created", "rotated", "rotated", "revoked"]);
  });
});

describe("a signal about a node that does not exist yet", () => {
  const apply = () => applyParked(api.database.database.inTx);
  const rowOf = async (signalId: string) =>
    (await db().select().from(receivedSignals).where(eq(receivedSignals.signalId, signalId)))[0];

  it("is parked, and applied when its node appears, unless it names another generation", async () => {
    const hostname = newName();
    const early = signal({ hostname }, { conditions: [condition({ observed_at: ago(300) })] });
    const other = signal({ hostname }, { generation: 1 });
    for (const one of [early, other]) expect(await outcomeOf(one, limited)).toMatchObject({ outcome: "parked" });
    expect(await apply()).toBe(0);
    await addNode(hostname, otherSite);
    expect(await apply()).toBe(0);
    const id = await addNode(hostname);
    expect(await apply()).toBe(2);
    expect(await conditionsOf(id)).toMatchObject([{ type: "fabric.ready", status: "True", generation: 2 }]);
    expect(await rowOf(early.signal_id)).toMatchObject({ outcome: "applied", nodeId: id, siteId });
    expect(await rowOf(other.signal_id)).toMatchObject({ outcome: "stale", nodeId: id });
    expect(await outcomeOf(early, limited)).toMatchObject({ outcome: "known", node_id: id });
    expect(await apply()).toBe(0);
  });

  it("is given up after a day", async () => {
    const one = signal({ hostname: newName() });
    await outcomeOf(one);
    await db()
      .update(receivedSignals)
      .set({ parkedUntil: sql`now()` })
      .where(eq(receivedSignals.signalId, one.signal_id));
    await apply();
    expect(await rowOf(one.signal_id)).toMatchObject({ outcome: "expired", decidedAt: expect.any(Date) });
  });

  it("is refused if too many signals of its sender wait, and a node keeps its newest signals only", async () => {
    const id = await addNode();
    const fill = (sender: string, count: number, more: { nodeId: NodeId | null; outcome: string }) =>
      db().execute(sql`insert into received_signals (sender, signal_id, content_sha256, outcome, named, node_id, conditions, decided_at, received_at, parked_until)
        select ${sender}, 'fill-' || n, '0', ${more.outcome}, '{"hostname":"x"}', ${more.nodeId}::uuid, '[]',
          case when ${more.outcome} = 'parked' then null else now() end, now() - interval '1 minute', now() + interval '1 hour' from generate_series(1, ${count}) n`);
    await fill("fabric-dc1", KEPT_WITHOUT_NODE.parkedOfSender, { nodeId: null, outcome: "parked" });
    const refused = await outcomeOf(signal({ hostname: newName() }), limited);
    expect(refused).toMatchObject({ outcome: "refused" });
    const foreign = signal({ id: await addNode(newName(), otherSite) });
    expect(await outcomeOf(foreign, limited)).toEqual({ ...refused, signal_id: foreign.signal_id });
    expect(await outcomeOf(signal({ hostname: newName() }))).toMatchObject({ outcome: "parked" });
    expect(await outcomeOf(signal({ id }), limited)).toMatchObject({ outcome: "applied" });
    await fill("another", KEPT_OF_A_NODE.receivedSignals + 20, { nodeId: id, outcome: "applied" });
    await outcomeOf(signal({ id }));
    expect(await listed(`node_id=${id}`)).toHaveLength(KEPT_OF_A_NODE.receivedSignals);
    const { body } = await api.ask("POST", `${NODES}/${id}/clear-reports`, { reason: "a wrong script" });
    expect(body.signals).toBe(KEPT_OF_A_NODE.receivedSignals);
  });
});
