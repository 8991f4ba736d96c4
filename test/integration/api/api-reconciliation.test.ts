import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { and, eq } from "../../../hub/db/orm.ts";
import { tripBreaker } from "../../../hub/db/queries/reconciler-breakers.ts";
import {
  auditLogs,
  domainEvents,
  maasSites,
  maasSiteWatches,
  type NodeMaasState,
} from "../../../hub/db/schema/index.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import type { DriftDetails } from "../../../shared/drift.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { type ApiHarness, startApiWithSite } from "../../support/api-harness.ts";
import { addActiveNode, addMachine } from "../../support/site-nodes.ts";

const PATH = "/api/v1/admin/reconciliation";
const DRIFT: DriftDetails = {
  rule: "released_outside",
  severity: "critical",
  action: "quarantine",
  maas_status: "Ready",
  maas_status_code: 4,
  expected: "Deployed",
  message: "Machine abc of c1 is 'Ready'.",
  detected_at: "2026-01-01T00:00:00.000Z",
  held_back: null,
};

describe("the API of reconciliation", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  beforeAll(async () => {
    ({ api, siteId } = await startApiWithSite());
  });
  afterAll(() => api.close());

  const addNode = (hostname: string, state: Partial<NodeMaasState>, status = 6): Promise<NodeId> =>
    api.database.database.inTx(async (tx) => {
      const id = await addActiveNode(tx, { siteId, hostname });
      if (state.quarantinedAt !== undefined)
        await moveNode(tx, id, { from: "active", to: "quarantined", owner: "reconciler" }, "drift");
      await addMachine(tx, { siteId, hostname, nodeId: id }, { status, ...state });
      return id;
    });
  const resolve = (id: string, body: unknown) => api.ask("POST", `${PATH}/drift/${id}/resolve`, body);
  const told = async (id: NodeId) => {
    const rows = await api.database.database.db
      .select({ data: domainEvents.data })
      .from(domainEvents)
      .where(and(eq(domainEvents.subject, `nodes/${id}`), eq(domainEvents.type, "node.drift.resolved")));
    return rows.map(({ data }) => z.object({ rule: z.string(), how: z.string() }).parse(data));
  };
  let drifted: NodeId;

  it("counts the nodes of each site by their drift", async () => {
    const judged = { lastReconciledAt: new Date() };
    await addNode("c1", judged);
    await addNode("c2", {});
    drifted = await addNode(
      "c3",
      { ...judged, driftDetected: true, driftDetails: DRIFT, quarantinedAt: new Date() },
      4,
    );
    const answer = await api.ask("GET", `${PATH}/status`);
    expect(answer.body).toMatchObject({ ok: 1, drifted: 1, acknowledged: 0, unreconciled: 1 });
    expect(answer.body.sites).toMatchObject([{ site_id: siteId, ok: 1, drifted: 1, breakers: [] }]);
    expect((await api.ask("GET", `${PATH}/status?site_id=${randomUUID()}`)).body).toMatchObject({ sites: [], ok: 0 });
  });

  it("lists drifted nodes by node, site, rule and severity", async () => {
    const list = async (query: string) =>
      (await api.ask("GET", `${PATH}/drift${query}`)).body.items.map((one: { hostname: string }) => one.hostname);
    expect(await list("")).toEqual(["c3"]);
    expect(await list(`?site_id=${siteId}&rule=released_outside&severity=critical`)).toEqual(["c3"]);
    expect(await list("?rule=powered_off")).toEqual([]);
    expect(await list(`?node_id=${drifted}`)).toEqual(["c3"]);
    expect(await list(`?node_id=${randomUUID()}`)).toEqual([]);
    expect((await api.ask("GET", `${PATH}/drift?rule=gone`)).problem.code).toBe("validation_failed");
    expect((await api.ask("GET", `${PATH}/drift`)).body.items[0]).toMatchObject({
      drift_details: DRIFT,
      node_status: "quarantined",
    });
  });

  it("returns no node to service whose machine is not deployed, and audits an acknowledgement", async () => {
    const refused = await resolve(drifted, { action: "return_to_service", reason: "it is well" });
    expect(refused.status).toBe(409);
    expect(refused.problem.detail).toContain("its machine c3 is 'status 4' in MAAS. Ask again once it is Deployed");
    const known = await resolve(drifted, { action: "acknowledge", reason: "we are moving it" });
    expect(known.body).toMatchObject({ drift_detected: false, acknowledged: { rule: "released_outside" } });
    expect(known.body.drift_resolved_at).not.toBeNull();
    expect(await told(drifted)).toEqual([{ rule: "released_outside", how: "acknowledged" }]);
    expect((await resolve(drifted, { action: "acknowledge", reason: "again" })).status).toBe(409);
    expect((await api.ask("GET", `${PATH}/drift?include_acknowledged=true`)).body.items).toHaveLength(1);
    const [row] = await api.database.database.db
      .select()
      .from(auditLogs)
      .where(eq(auditLogs.target, `nodes/${drifted}`));
    expect(row).toMatchObject({ reason: "we are moving it", details: { prior: { drift: DRIFT } } });
  });

  it("returns a quarantined node to service once its machine is deployed", async () => {
    const beside = {
      rule: "powered_off",
      maas_status_code: 6,
      by: "ann",
      at: DRIFT.detected_at,
      reason: "known",
    } as const;
    const drift = { driftDetected: true, driftDetails: DRIFT, driftAcknowledged: beside };
    const id = await addNode("c4", { ...drift, quarantinedAt: new Date() });
    const answer = await resolve(id, { action: "return_to_service", reason: "mended" });
    expect(answer.body).toMatchObject({
      node_status: "active",
      drift_detected: false,
      drift_resolved_at: expect.any(String),
      acknowledged: null,
      quarantined_at: null,
    });
    expect(await told(id)).toEqual([{ rule: "released_outside", how: "returned_to_service" }]);
    const again = await resolve(id, { action: "return_to_service", reason: "mended" });
    expect(again.problem).toMatchObject({ status: 409, detail: expect.stringMatching(/is active, .*; acknowledge/) });
    expect((await resolve(randomUUID(), { action: "acknowledge", reason: "x" })).status).toBe(404);
  });

  it("requests a sweep of a site, unless the site is disabled", async () => {
    const { db } = api.database.database;
    expect((await api.ask("POST", `${PATH}/run`, { site_id: siteId })).status).toBe(202);
    const [watch] = await db.select().from(maasSiteWatches).where(eq(maasSiteWatches.siteId, siteId));
    expect(watch?.sweepRequestedAt).toBeInstanceOf(Date);
    await db.update(maasSites).set({ status: "disabled" }).where(eq(maasSites.id, siteId));
    expect((await api.ask("POST", `${PATH}/run`, { site_id: siteId })).status).toBe(409);
    await db.update(maasSites).set({ status: "active" }).where(eq(maasSites.id, siteId));
  });

  it("shows a breaker and resets it, once", async () => {
    const trip = {
      siteId,
      kind: "quarantine",
      wouldMove: 2,
      moved: 4,
      moveLimit: 5,
      inService: 12,
      nodeIds: [drifted],
    } as const;
    await api.database.database.inTx((tx) => tripBreaker(tx, trip));
    expect((await api.ask("GET", `${PATH}/breakers`)).body.items).toMatchObject([
      { state: "open", would_move: 2, moved: 4, move_limit: 5, in_service: 12 },
    ]);
    expect((await api.ask("GET", `${PATH}/status`)).body.sites[0].breakers).toMatchObject([{ state: "open" }]);
    const reset = (body: unknown) => api.ask("POST", `${PATH}/breakers/${siteId}/reset`, body);
    const accepted = (await reset({ accept_drift: true, reason: "a rack burnt" })).body;
    expect(accepted).toMatchObject({ state: "accepting", tripped_at: null });
    expect(Date.parse(accepted.accept_until) - Date.parse(accepted.reset_at)).toBe(15 * 60_000);
    expect((await reset({ reason: "again" })).status).toBe(409);
    const unknown = await api.ask("POST", `${PATH}/breakers/${randomUUID()}/reset`, { reason: "no such site" });
    expect(unknown.problem).toMatchObject({ status: 404, code: "not_found" });
    expect((await api.ask("GET", `${PATH}/breakers`)).body.items[0].reset_reason).toBe("a rack burnt");
    await api.database.database.inTx((tx) => tripBreaker(tx, trip));
    expect((await reset({ reason: "MAAS was wrong" })).body).toMatchObject({ state: "closed", accept_until: null });
  });
});
