import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { nodeConditions, nodes, readinessSignals, reportTokens } from "../../hub/db/schema/index.ts";
import { createNode } from "../../hub/node/create-node.ts";
import { tokenHash } from "../../hub/node/enrollment-tokens.ts";
import { NodeId, SiteId } from "../../shared/ids.ts";
import { type ApiHarness, seedApi, startApi } from "../support/api-harness.ts";

const NODES = "/api/v1/admin/nodes";

describe("readiness of external systems by API", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  beforeAll(async () => {
    api = await startApi();
    siteId = SiteId.parse((await seedApi(api)).siteId);
  });
  afterAll(() => api.close());

  async function addNode(generation = 2): Promise<NodeId> {
    const id = NodeId.parse(randomUUID());
    const facts = { sku: "s", gpusTotal: 8, regionCode: "r1", onboardingMode: "maas", owner: "onboarding" } as const;
    const { db, inTx } = api.database.database;
    await inTx((tx) => createNode(tx, { id, hostname: `n-${id.slice(0, 8)}`, siteId, ...facts }));
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

    it("is answered from memory under the same Idempotency-Key", async () => {
      const id = await addNode();
      const key = { "idempotency-key": randomUUID() };
      const body = signal();
      const first = await post(id, body, key);
      const again = await post(id, body, key);
      expect(again.body).toEqual(first.body);
      expect(again.headers.get("idempotency-replayed")).toBe("true");
    });

    it.each([1, 3])("of generation %i, which is not the node's, is kept and answered as such", async (generation) => {
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
      "does not speak for the agent: %s is refused",
      async (type) => {
        const answer = await post(await addNode(), signal({}, { type }));
        expect(answer).toMatchObject({ status: 400, problem: { code: "validation_failed" } });
        expect(answer.problem.errors?.[0]?.pointer).toBe("/conditions/0/type");
      },
    );

    it("is shown as unknown once it is stale, with what it was, and keeps work off its node", async () => {
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
        `Nothing was heard of it since ${observed_at}, and that held until ${expires_at}. It was True (Healthy): All is well`,
      );
      expect((await api.ask("GET", `${NODES}/${id}`)).body.unschedulable_reasons).toContain("agent.healthy is stale");
    });

    it("names a node that is there, and an id that is no other node's", async () => {
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

    it("is of the node's present generation, shown once, kept as a hash, and replaced by the next", async () => {
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

    it("is kept for no repeated request, and is for a node that is there", async () => {
      const id = await addNode();
      expect((await issue(id, { "idempotency-key": "k1" })).problem.code).toBe("validation_failed");
      expect(await rowsOf(id)).toEqual([]);
      expect((await issue(randomUUID())).problem.code).toBe("not_found");
    });

    it("goes with its node", async () => {
      const id = await addNode();
      await issue(id);
      await api.database.database.db.delete(nodes).where(eq(nodes.id, id));
      expect(await rowsOf(id)).toEqual([]);
    });
  });
});
