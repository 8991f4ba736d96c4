/** Signals that wait for their node: who may apply them, when they count, and what a sender that is limited to sites sees of them. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eq, inArray, sql } from "../../../hub/db/orm.ts";
import { nodes, receivedSignals } from "../../../hub/db/schema/index.ts";
import { applyParked } from "../../../hub/node/parked-signals.ts";
import { type NodeId, SiteId } from "../../../shared/ids.ts";
import { type ApiHarness, seedApi, startApiWithSite } from "../../support/api-harness.ts";
import { addNode as addSiteNode } from "../../support/site-nodes.ts";

const SIGNALS = "/api/v1/readiness/signals";
const TOKENS = "/api/v1/admin/tokens";
const SENDERS = "/api/v1/readiness/senders";

let api: ApiHarness;
let siteId: SiteId;
let otherSite: SiteId;

beforeAll(async () => {
  ({ api, siteId } = await startApiWithSite());
  otherSite = SiteId.parse((await seedApi(api, "dc2")).siteId);
});
afterEach(() => db().delete(receivedSignals));
afterAll(() => api.close());

const db = () => api.database.database.db;
const apply = () => applyParked(api.database.database.inTx);
const newName = () => `n-${randomUUID().slice(0, 8)}`;

async function addNode(hostname = newName(), { at = siteId, generation = 2 } = {}): Promise<NodeId> {
  const id = await api.database.database.inTx((tx) => addSiteNode(tx, { siteId: at, hostname }));
  await db().update(nodes).set({ generation }).where(eq(nodes.id, id));
  return id;
}
async function newToken(siteIds?: SiteId[]) {
  const name = newName();
  const body = {
    name,
    role: "provisioner",
    expires_in_days: 1,
    ...(siteIds === undefined ? {} : { site_ids: siteIds }),
  };
  const { id, token } = (await api.ask("POST", TOKENS, body)).body;
  return { id, name, headers: { authorization: `Bearer ${token}` } };
}
const signal = (node: object) => ({
  signal_id: randomUUID(),
  node,
  conditions: [
    { type: "fabric.ready", status: "True", reason: "Up", message: "m", observed_at: "2026-01-01T00:00:00Z" },
  ],
});
async function post(body: object, headers = {}) {
  const answer = await api.ask("POST", SIGNALS, body, headers);
  expect(answer.status, JSON.stringify(answer.problem)).toBe(202);
  return answer.body.results[0];
}
const conditionsOf = async (id: NodeId) => (await api.ask("GET", `/api/v1/admin/nodes/${id}`)).body.conditions;
const listed = async (query: string, headers = {}) =>
  (await api.ask("GET", `${SIGNALS}?limit=200&${query}`, undefined, headers)).body.items;
const rowOf = async (signalId: string) =>
  (await db().select().from(receivedSignals).where(eq(receivedSignals.signalId, signalId)))[0];
const change = (signalIds: string[], to: object) =>
  db().update(receivedSignals).set(to).where(inArray(receivedSignals.signalId, signalIds));

describe("a sender that is revoked", () => {
  it("leaves no signal that the hub applies later, also none that came at the same time", async () => {
    const token = await newToken();
    const sender = (await api.ask("POST", SENDERS, { name: newName() })).body;
    for (const { revoke, from } of [
      { revoke: `${TOKENS}/${token.id}/revoke`, from: token.name },
      { revoke: `${SENDERS}/${sender.id}/revoke`, from: `sender:${sender.name}` },
    ]) {
      const hostname = newName();
      const [before, after] = [signal({ hostname }), signal({ hostname })];
      for (const one of [before, after]) await post(one);
      await change([before.signal_id], { sender: from });
      expect((await api.ask("POST", revoke, { reason: "a test" })).status).toBe(200);
      expect(await rowOf(before.signal_id)).toMatchObject({
        outcome: "expired",
        detail: expect.stringContaining("revoked"),
        decidedAt: expect.any(Date),
      });
      await change([after.signal_id], { sender: from });
      const id = await addNode(hostname);
      expect(await apply()).toBe(0);
      expect(await rowOf(after.signal_id)).toMatchObject({ outcome: "parked" });
      expect(await conditionsOf(id)).toEqual([]);
    }
  });
});

describe("a signal that waits", () => {
  it("is applied although many older signals wait in vain", async () => {
    await db().execute(sql`insert into received_signals
      (sender, signal_id, content_sha256, outcome, named, conditions, received_at, parked_until)
      select 'fill-' || n % 2, 'fill-' || n, '0', 'parked', '{"hostname":"nowhere"}', '[]', now() - interval '1 hour', now() + interval '1 hour'
      from generate_series(1, 501) n`);
    const hostname = newName();
    await post(signal({ hostname }));
    await addNode(hostname);
    expect(await apply()).toBe(1);
  });

  it("counts from its arrival", async () => {
    const hostname = newName();
    const one = signal({ hostname });
    await post(one);
    const receivedAt = new Date(Date.now() - 3 * 3_600_000);
    await change([one.signal_id], { receivedAt });
    const id = await addNode(hostname);
    expect(await apply()).toBe(1);
    expect(await conditionsOf(id)).toMatchObject([{ type: "fabric.ready", received_at: receivedAt.toISOString() }]);
  });

  it("waits further while its node has no generation yet, unless it names one", async () => {
    const hostname = newName();
    const one = signal({ hostname });
    await post(one);
    const id = await addNode(hostname, { generation: 0 });
    expect(await apply()).toBe(0);
    expect(await rowOf(one.signal_id)).toMatchObject({ outcome: "parked" });
    await db().update(nodes).set({ generation: 1 }).where(eq(nodes.id, id));
    expect(await apply()).toBe(1);
    expect(await conditionsOf(id)).toMatchObject([{ type: "fabric.ready", generation: 1 }]);
  });
});

describe("a sender that is limited to sites", () => {
  it("sees a signal about a node elsewhere as one about an unknown node, at every time", async () => {
    const { name, headers } = await newToken([siteId]);
    const abroad = await addNode(newName(), { at: otherSite });
    const [foreign, unknown] = [signal({ id: abroad }), signal({ id: randomUUID() })];
    const inSite = { id: abroad, site_id: otherSite };
    const [foreignThere, unknownThere] = [signal(inSite), signal({ ...inSite, id: randomUUID() })];
    const all = [foreign, unknown, foreignThere, unknownThere];
    const ids = all.map(({ signal_id }) => signal_id);
    for (const one of all) expect(await post(one, headers)).toMatchObject({ outcome: "parked", node_id: null });
    const own = { id: "", signal_id: "", node: "", conditions: "", received_at: "", parked_until: "" };
    const shown = async (query = "", as: object = headers) =>
      (await listed(`sender=${name}${query}`, as)).map((row: object) => ({ ...row, ...own }));
    const waiting = await shown();
    expect(waiting).toHaveLength(4);
    for (const row of waiting) expect(row).toEqual({ ...waiting[0], outcome: "parked", decided_at: null });
    expect(await shown("&outcome=parked")).toEqual(waiting);
    expect(await shown("&outcome=foreign")).toEqual([]);
    expect(await shown("&outcome=foreign", {})).toHaveLength(2);

    await change(ids, { parkedUntil: sql`now() - interval '1 minute'` });
    // Before and after the sweep has seen that the time has passed.
    for (const sweep of [() => Promise.resolve(0), apply]) {
      await sweep();
      const over = await listed(`sender=${name}&outcome=expired`, headers);
      expect(over).toHaveLength(4);
      for (const row of over)
        expect(row).toMatchObject({ detail: over[0].detail, decided_at: row.parked_until, outcome: "expired" });
      for (const one of all)
        expect(await post(one, headers)).toMatchObject({
          outcome: "known",
          detail: expect.stringContaining("it was expired"),
        });
    }
    expect(await shown("&outcome=foreign", {})).toHaveLength(2);
  });

  it("has its signal applied to a node at its site that appears later, also if one elsewhere has the name", async () => {
    const { headers } = await newToken([siteId]);
    const hostname = newName();
    await addNode(hostname, { at: otherSite });
    const one = signal({ hostname });
    expect(await post(one, headers)).toMatchObject({ outcome: "parked" });
    expect(await apply()).toBe(0);
    const id = await addNode(hostname);
    expect(await apply()).toBe(1);
    expect(await rowOf(one.signal_id)).toMatchObject({ outcome: "applied", nodeId: id, siteId });
  });
});
