import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KEPT_OF_A_NODE } from "../../../hub/db/kept.ts";
import { eq, sql } from "../../../hub/db/orm.ts";
import { readConditionFacts } from "../../../hub/db/queries/node-conditions.ts";
import { nodeConditions, nodes, readinessSignals, reportTokens } from "../../../hub/db/schema/index.ts";
import { tokenHash } from "../../../hub/node/enrollment-tokens.ts";
import { writeNoise } from "../../../hub/node/noise.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { type ApiHarness, startApiWithSite } from "../../support/api-harness.ts";
import { addNode as addSiteNode } from "../../support/site-nodes.ts";

const NODES = "/api/v1/admin/nodes";

describe("readiness of external systems over the API", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  beforeAll(async () => {
    ({ api, siteId } = await startApiWithSite());
  });
  afterAll(() => api.close());

  async function addNode(generation = 2): Promise<NodeId> {
    const { db, inTx } = api.database.database;
    const id = await inTx((tx) => addSiteNode(tx, { siteId, hostname: `n-${randomUUID().slice(0, 8)}` }));
    await db.update(nodes).set({ generation }).where(eq(nodes.id, id));
    return id;
  }
  const BOOTED = { type: "os.booted", status: "True", reason: "Provisioned", message: "Network is up" };
  const signal = (more: object = {}, condition: object = {}) => ({
    signal_id: randomUUID(),
    generation: 2,
    conditions: [{ ...BOOTED, observed_at: new Date().toISOString(), ...condition }],
    ...more,
  });
  const post = (id: string, body: unknown, headers = {}) =>
    api.ask("POST", `${NODES}/${id}/readiness-signals`, body, headers);
  const conditionsOf = async (id: NodeId) => (await api.ask("GET", `${NODES}/${id}`)).body.conditions;

  describe("a signal", () => {
    it("is applied once per id, audited, and shown with its source", async () => {
      const id = await addNode();
      const first = signal();
      const taken = { signal_id: first.signal_id, outcome: "applied", node_generation: 2 };
      expect(await post(id, first)).toMatchObject({ status: 202, body: taken });
      const conditions = await conditionsOf(id);
      expect(conditions).toMatchObject([{ ...BOOTED, source: "external", generation: 2 }]);
      expect(await post(id, first)).toMatchObject({ status: 202, body: { ...taken, outcome: "known" } });
      expect(await conditionsOf(id)).toEqual(conditions);
      const { rows } = await api.database.database.pool.query("select action from audit_logs where target = $1", [
        `nodes/${id}`,
      ]);
      expect(rows).toEqual([{ action: "postReadinessSignal" }, { action: "postReadinessSignal" }]);
    });

    it("keeps no credential of its message, neither as a condition nor as a signal", async () => {
      const id = await addNode();
      await post(id, signal({}, { message: "curl: Authorization: Bearer mN3kQ7xZt0aB4cD5eF6gH7 was refused" }));
      const message = "curl: Authorization: Bearer [redacted] was refused";
      expect(await conditionsOf(id)).toMatchObject([{ message }]);
      const stored = await api.database.database.db
        .select()
        .from(readinessSignals)
        .where(eq(readinessSignals.nodeId, id));
      expect(stored).toMatchObject([{ conditions: [{ message }] }]);
    });

    it("may use its own condition types up to a limit, until an operator clears them", async () => {
      const id = await addNode();
      const own = (from: number, count: number) => ({
        ...signal(),
        conditions: Array.from({ length: count }, (_, n) => ({
          ...signal().conditions[0],
          type: `fabric.port_${from + n}`,
        })),
      });
      const all = [...Array(KEPT_OF_A_NODE.ownConditions / 32).keys()].map((part) => own(part * 32, 32));
      for (const body of all) expect(await post(id, body)).toMatchObject({ status: 202 });
      const before = await api.counts();
      const refused = await post(id, own(1_000, 1));
      expect(refused.problem).toMatchObject({ status: 409, code: "conflict" });
      expect(refused.problem.detail).toContain("clear-reports");
      expect(await api.counts()).toEqual(before);
      // The limit for a node's custom condition types applies only to new types. A node at the limit for custom condition types still accepts signals
      // of its existing custom types and of Muster's own types.
      expect(await post(id, own(0, 1))).toMatchObject({ status: 202 });
      expect(await post(id, signal())).toMatchObject({ status: 202 });
      await api.database.database.inTx((tx) => writeNoise(tx, { nodeId: id, noisy: true, kind: "readiness" }));
      expect(await conditionsOf(id)).toHaveLength(KEPT_OF_A_NODE.ownConditions + 2);

      const cleared = await api.ask("POST", `${NODES}/${id}/clear-reports`, { reason: "a wrong script" });
      expect(cleared).toMatchObject({
        status: 200,
        body: { conditions: KEPT_OF_A_NODE.ownConditions + 1, signals: 4 },
      });
      expect(await conditionsOf(id)).toMatchObject([{ type: "os.booted" }]);
      expect((await api.ask("GET", `${NODES}/${id}`)).body.events[0]).toMatchObject({ type: "reports_cleared" });
      const { rows } = await api.database.database.pool.query(
        "select reason, details->>'signals' as signals from audit_logs where target = $1 and action = 'clearNodeReports'",
        [`nodes/${id}`],
      );
      expect(rows).toEqual([{ reason: "a wrong script", signals: "4" }]);
      expect(await post(id, own(1_000, 1))).toMatchObject({ status: 202 });
    });

    it("is stored among the newest of its source, without removing those of other sources", async () => {
      const id = await addNode();
      const other = await addNode();
      expect((await post(other, signal())).status).toBe(202);
      await api.database.database.db.execute(sql`
        insert into readiness_signals (id, node_id, generation, source, conditions, applied, received_at)
        select gen_random_uuid(), ${id}, 1, source, '[]', true, now() - make_interval(secs => n)
        from generate_series(1, ${KEPT_OF_A_NODE.signals + 50}) n, unnest(array['external', 'agent']) source`);
      const newest = signal();
      expect((await post(id, newest)).status).toBe(202);
      const { rows } = await api.database.database.pool.query(
        `select source, count(*)::int as kept, bool_or(id = $2) as newest from readiness_signals
         where node_id = $1 group by source order by source`,
        [id, newest.signal_id],
      );
      expect(rows).toEqual([
        { source: "agent", kept: KEPT_OF_A_NODE.signals + 50, newest: false },
        { source: "external", kept: KEPT_OF_A_NODE.signals, newest: true },
      ]);
      const left = await api.database.database.pool.query("select 1 from readiness_signals where node_id = $1", [
        other,
      ]);
      expect(left.rowCount).toBe(1);
    });

    it("leaves lists and answers small even if an older hub accepted a thousand types", async () => {
      const id = await addNode();
      await post(id, signal());
      await api.database.database.db.execute(sql`
        insert into node_conditions (node_id, type, status, reason, message, generation, source, observed_at)
        select ${id}, 'x.type_' || n, 'True', 'Said', repeat('x', 1024), 2, 'agent', now() from generate_series(1, 1000) n`);
      const detail = await conditionsOf(id);
      expect(detail).toHaveLength(100);
      expect(detail.map(({ type }: { type: string }) => type)).toContain("os.booted");
      const [row] = await readConditionFacts(api.database.database.db, [id]);
      expect(await readConditionFacts(api.database.database.db, [id])).toHaveLength(1);
      expect(row).toMatchObject({ type: "os.booted", message: "" });
      const cleared = await api.ask("POST", `${NODES}/${id}/clear-reports`, { reason: "left by a bad host" });
      expect(cleared.body).toMatchObject({ conditions: 1_000 });
    });

    it("is answered from the stored answer under the same Idempotency-Key", async () => {
      const id = await addNode();
      const key = { "idempotency-key": randomUUID() };
      const body = signal();
      const first = await post(id, body, key);
      const again = await post(id, body, key);
      expect(again.body).toEqual(first.body);
      expect(again.headers.get("idempotency-replayed")).toBe("true");
    });

    it.each([1, 3])("of generation %i, which is not the node's, is stored but not applied", async (generation) => {
      const id = await addNode(2);
      const other = signal({ generation });
      expect(await post(id, other)).toMatchObject({ status: 202, body: { outcome: "kept", node_generation: 2 } });
      expect(await conditionsOf(id)).toEqual([]);
      const kept = await api.database.database.db
        .select()
        .from(readinessSignals)
        .where(eq(readinessSignals.id, other.signal_id));
      expect(kept).toMatchObject([{ nodeId: id, generation, applied: false, source: "external", bootId: null }]);
    });

    it.each(["agent.healthy", "agent.connected", "bootstrap.muster"])(
      "cannot set a condition that belongs to the agent: %s is refused",
      async (type) => {
        const answer = await post(await addNode(), signal({}, { type }));
        expect(answer).toMatchObject({ status: 400, problem: { code: "validation_failed" } });
        expect(answer.problem.errors?.[0]?.pointer).toBe("/conditions/0/type");
      },
    );

    it("is shown as Unknown with its old status once it is stale, and keeps work off its node", async () => {
      const id = await addNode();
      const said = { nodeId: id, status: "True", reason: "Healthy", message: "All is well", generation: 2 } as const;
      const at = { source: "agent", observedAt: sql`now() - interval '1 hour'` };
      await api.database.database.db.insert(nodeConditions).values([
        { ...said, ...at, type: "agent.healthy", expiresAt: sql`now() - interval '50 minutes'` },
        { ...said, ...at, type: "os.booted" },
      ]);
      const [healthy, booted] = await conditionsOf(id);
      expect(booted).toMatchObject({ status: "True", expires_at: null });
      expect(healthy).toMatchObject({ status: "Unknown", reason: "Stale" });
      const { observed_at, expires_at, message } = healthy;
      expect(message).toBe(
        `The last report of this condition came at ${observed_at} and expired at ${expires_at}. It said True (Healthy): All is well`,
      );
      const { unschedulable_reasons: reasons, readiness } = (await api.ask("GET", `${NODES}/${id}`)).body;
      expect(reasons.join()).toContain(`agent.healthy is stale since ${expires_at}. `);
      expect(readiness.lacking).toContainEqual(
        expect.objectContaining({ type: "agent.healthy", kind: "stale", since: expires_at }),
      );
    });

    it("must name an existing node and an id that no other node has used", async () => {
      expect((await post(randomUUID(), signal())).problem.code).toBe("not_found");
      const [one, other] = [await addNode(), await addNode()];
      const body = signal();
      await post(one, body);
      expect((await post(other, body)).problem.code).toBe("conflict");
      await api.database.database.db.update(nodes).set({ status: "deleted" }).where(eq(nodes.id, other));
      expect((await post(other, signal())).problem.code).toBe("conflict");
    });
  });

  describe("a report token", () => {
    const issue = (id: string, headers = {}) => api.ask("POST", `${NODES}/${id}/report-token`, undefined, headers);
    const rowsOf = (id: NodeId) =>
      api.database.database.db.select().from(reportTokens).where(eq(reportTokens.nodeId, id));

    it("is for the node's current generation, shown once, stored as a hash, and replaced by the next token", async () => {
      const id = await addNode(2);
      const first = await issue(id);
      const { token } = first.body;
      expect(first).toMatchObject({ status: 201, body: { node_id: id, generation: 2 } });
      expect(first.body.phone_home_url).toMatch(new RegExp(`^https://.*/internal/v1/phone-home/${token}$`));
      expect(first.body.reporting_url).toMatch(new RegExp(`^https://.*/internal/v1/cloud-init/${token}$`));
      const kept = await rowsOf(id);
      expect(kept).toMatchObject([{ generation: 2, tokenSha256: tokenHash(token) }]);
      await api.database.database.db.update(nodes).set({ generation: 3 }).where(eq(nodes.id, id));
      const next = await issue(id);
      expect(next.body.generation).toBe(3);
      expect(await rowsOf(id)).toMatchObject([{ generation: 3, tokenSha256: tokenHash(next.body.token) }]);
      const { rows } = await api.database.database.pool.query("select to_jsonb(a) as row from audit_logs a");
      expect(JSON.stringify([kept, rows, await api.ask("GET", `${NODES}/${id}`)])).not.toContain(token);
    });

    it("cannot be requested with an Idempotency-Key or for an unknown node", async () => {
      const id = await addNode();
      expect((await issue(id, { "idempotency-key": "k1" })).problem.code).toBe("validation_failed");
      expect(await rowsOf(id)).toEqual([]);
      expect((await issue(randomUUID())).problem.code).toBe("not_found");
    });

    it("is deleted with its node", async () => {
      const id = await addNode();
      await issue(id);
      await api.database.database.db.delete(nodes).where(eq(nodes.id, id));
      expect(await rowsOf(id)).toEqual([]);
    });
  });
});
