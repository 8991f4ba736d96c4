/** Health overrides of operators: templates and alerts, what they prevent, replacements, expiry, and changes of only the version that was seen. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sweepAllocations } from "../../../hub/allocations/sweep.ts";
import { endExpiredOverrides, setHealthOverride } from "../../../hub/node/health-override.ts";
import { type NodeId, SiteId } from "../../../shared/ids.ts";
import { addSchedulableNode } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { countersign } from "../../support/countersign.ts";
import { quietLog } from "../../support/log.ts";

const UNKNOWN = "00000000-0000-4000-8000-000000000000";

describe("the health overrides of a node", () => {
  let api: ApiHarness;
  let site: SiteId;
  let skuId: string;
  let named = 0;
  beforeAll(async () => {
    api = await startApi();
    const seeded = await seedApi(api);
    site = SiteId.parse(seeded.siteId);
    skuId = seeded.skuId;
  });
  afterAll(() => api.close());

  const newNode = async (): Promise<NodeId> => {
    named += 1;
    return api.database.database.inTx((tx) =>
      addSchedulableNode(tx, { siteId: site, hostname: `h${named}`, sku: skuId }),
    );
  };
  const set = (id: string, body: object) =>
    api.ask("POST", `/api/v1/admin/nodes/${id}/health-overrides`, { reason: "a test", ...body });
  const mustSet = async (id: string, body: object) => {
    const answer = await set(id, body);
    expect(answer.status, JSON.stringify(answer.problem)).toBe(200);
    return answer.body;
  };
  const health = async (id: string) => (await api.ask("GET", `/api/v1/admin/nodes/${id}/health-overrides`)).body;
  const remove = (id: string, source: string, more: object = {}) =>
    api.ask("POST", `/api/v1/admin/nodes/${id}/remove-health-override`, { source, reason: "over", ...more });
  const schedulable = async (id: string) => {
    const { body } = await api.ask("GET", `/api/v1/admin/nodes/${id}`);
    const { body: list } = await api.ask("GET", `/api/v1/admin/nodes?schedulable=true&hostname=${body.hostname}`);
    expect(list.items.length, "the list and the node agree").toBe(body.schedulable ? 1 : 0);
    return body.schedulable ? "schedulable" : body.unschedulable_reasons;
  };
  const eventsOf = async (id: string) => {
    const { rows } = await api.database.database.pool.query<{ type: string; data: { source: string; by: string } }>(
      "select type, data from domain_events where subject = $1 and type like 'node.health_override.%' order by seq",
      [`nodes/${id}`],
    );
    return rows.map(({ type, data }) => `${type.split(".").at(-1)} ${data.source} by ${data.by}`);
  };

  it("keep new tenants off by a template, until a person removes it", async () => {
    const id = await newNode();
    expect(await schedulable(id)).toBe("schedulable");
    const body = await mustSet(id, {
      template: "OutForRepair",
      message: "GPU 3 fell off the bus",
      tenant_message: "in repair",
    });
    expect(body).toMatchObject({ prevents_allocations: true, prevents_release: false });
    expect(body.alerts).toEqual([
      {
        ...{
          id: "Maintenance",
          target: "OutForRepair",
          message: "GPU 3 fell off the bus",
          tenant_message: "in repair",
        },
        classifications: ["PreventAllocations", "SuppressExternalAlerting", "ExcludeFromStateMachineSla"],
        ...{ in_alert_since: expect.any(String), sources: ["out-for-repair"] },
      },
    ]);
    expect(body.health_overrides).toMatchObject([
      {
        source: "out-for-repair",
        mode: "merge",
        set_by: "operator:admin",
        reason: "a test",
        expires_at: null,
        revision: 1,
        in_force: true,
      },
    ]);
    expect(await health(id)).toEqual(body);
    expect(await schedulable(id)).toEqual([expect.stringContaining("health override out-for-repair: a test")]);
    expect((await remove(id, "out-for-repair")).body).toMatchObject({ health_overrides: [], alerts: [] });
    expect(await schedulable(id)).toBe("schedulable");
    expect(await eventsOf(id)).toEqual([
      "set out-for-repair by operator:admin",
      "lifted out-for-repair by operator:admin",
    ]);
  });

  it("prevent only what their classifications say", async () => {
    const id = await newNode();
    await mustSet(id, { template: "Validation", message: "burn-in at night" });
    const alerts = [{ id: "FanSpeed", target: "fan-2", message: "1,200 rpm", classifications: ["Hardware"] }];
    expect(await mustSet(id, { source: "site-fans", alerts })).toMatchObject({ prevents_allocations: false });
    expect(await schedulable(id)).toBe("schedulable");
    const worse = [{ ...alerts[0], classifications: ["Hardware", "PreventAllocations"] }];
    expect((await mustSet(id, { source: "site-fans", alerts: worse })).health_overrides).toMatchObject([
      { source: "site-fans", revision: 2 },
      { source: "validation" },
    ]);
    expect(await schedulable(id)).toEqual([expect.stringContaining("site-fans")]);
  });

  it("are hidden by a replacement, of which a node has one, but never Muster's own", async () => {
    const id = await newNode();
    await mustSet(id, { template: "Degraded", message: "slow" });
    const marked = await mustSet(id, { template: "MarkHealthy" });
    expect(marked.health_overrides).toMatchObject([
      { source: "degraded", in_force: false },
      { source: "mark-healthy", mode: "replace", in_force: true, alerts: [] },
    ]);
    expect(marked.alerts).toEqual([]);
    expect(await schedulable(id)).toBe("schedulable");
    const another = await set(id, { source: "other", mode: "replace", alerts: [] });
    expect([another.status, another.problem?.detail]).toEqual([409, expect.stringContaining("mark-healthy")]);
    const own = { nodeId: id, source: "disk-erase", target: null, reason: "not erased", setBy: "operation:x" };
    await api.database.database.inTx((tx) => setHealthOverride(tx, own));
    expect(await schedulable(id)).toEqual([expect.stringContaining("disk-erase")]);
    expect((await set(id, { source: "disk-erase", mode: "replace", alerts: [] })).status).toBe(400);
    expect((await health(id)).alerts).toMatchObject([{ id: "disk-erase", classifications: ["PreventAllocations"] }]);
  });

  it("end when their time is over, which the history tells", async () => {
    const id = await newNode();
    const body = await mustSet(id, { template: "HostUpdate", message: "firmware", expires_in_minutes: 90 });
    const [{ since, expires_at }] = body.health_overrides;
    expect(Date.parse(expires_at) - Date.parse(since)).toBeGreaterThan(89 * 60_000);
    expect(Date.parse(expires_at) - Date.parse(since)).toBeLessThan(91 * 60_000);
    await mustSet(id, { template: "MarkHealthy", expires_in_minutes: 5 });
    const { pool, inTx } = api.database.database;
    await pool.query(
      "update node_health_overrides set expires_at = now() where node_id = $1 and source = 'mark-healthy'",
      [id],
    );
    expect(await schedulable(id)).toEqual([expect.stringContaining("host-update")]);
    // An expired replacement makes room for another one before the hub has ended it.
    await mustSet(id, { source: "other", mode: "replace", alerts: [] });
    expect(await schedulable(id)).toBe("schedulable");
    await remove(id, "other");
    await pool.query("update node_health_overrides set expires_at = now() where node_id = $1", [id]);
    expect(await schedulable(id)).toBe("schedulable");
    expect(await health(id)).toMatchObject({ health_overrides: [], alerts: [] });
    expect(await inTx((tx) => endExpiredOverrides(tx, 100))).toBe(1);
    expect(await inTx((tx) => endExpiredOverrides(tx, 100))).toBe(0);
    expect(await eventsOf(id)).toEqual([
      ...["set host-update by operator:admin", "set mark-healthy by operator:admin", "lifted mark-healthy by hub"],
      ...["set other by operator:admin", "lifted other by operator:admin", "lifted host-update by hub"],
    ]);
  });

  it("change only in the version that the client has seen", async () => {
    const id = await newNode();
    const degraded = { template: "Degraded", message: "slow" };
    expect((await set(id, { ...degraded, expected_revision: 1 })).status).toBe(412);
    const answers = await Promise.all(
      [0, 0, 0].map((expected_revision) => set(id, { ...degraded, expected_revision })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 412, 412]);
    expect(answers.find(({ status }) => status === 412)?.problem?.code).toBe("precondition_failed");
    expect((await mustSet(id, { ...degraded, expected_revision: 1 })).health_overrides).toMatchObject([
      { revision: 2 },
    ]);
    const removed = await remove(id, "degraded", { expected_revision: 1 });
    expect([removed.status, removed.problem?.detail]).toEqual([412, expect.stringContaining("has revision 2")]);
    expect((await remove(id, "degraded", { expected_revision: 2 })).status).toBe(200);
  });

  it("keep a tenant's allocation from a release without force", async () => {
    const id = await newNode();
    const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0yvS5XjGx4Wl5n0h9nUQ0m1c8qk7s0m6yZ3n1t2u3v ada@example";
    const body = { node_id: id, tenant: "acme", login_user: "ada", ssh_keys: [key], root: false };
    const made = await api.ask("POST", "/api/v1/admin/allocations", body);
    expect(made.status, JSON.stringify(made.problem)).toBe(202);
    const release = (force: boolean) =>
      api.ask("POST", `/api/v1/admin/allocations/${made.body.id}/${force ? "force-release" : "release"}`, {
        reason: "over",
      });
    expect(await mustSet(id, { template: "RequestOnlineRepair", message: "GPU 3" })).toMatchObject({
      prevents_release: true,
    });
    await mustSet(id, { template: "MarkHealthy" });
    expect(await health(id), "no replacement hides what keeps the tenant's data").toMatchObject({
      prevents_release: true,
      prevents_allocations: false,
    });
    const refused = await release(false);
    expect([refused.status, refused.problem?.detail]).toEqual([409, expect.stringContaining("request-online-repair")]);
    const { db, inTx, pool } = api.database.database;
    await pool.query("update allocations set status = 'active', ends_at = now() - interval '1 minute' where id = $1", [
      made.body.id,
    ]);
    await sweepAllocations({ db, inTx, log: quietLog, countersign });
    const { body: stays } = await api.ask("GET", `/api/v1/admin/allocations/${made.body.id}`);
    expect([stays.status, stays.next_action]).toEqual(["active", expect.stringContaining("request-online-repair")]);
    const forced = await release(true);
    expect(forced.status, JSON.stringify(forced.problem)).toBe(202);
  });

  it("are of nodes that exist, are not deleted, and have at most 32 others", async () => {
    const id = await newNode();
    expect((await set(UNKNOWN, { template: "MarkHealthy" })).status).toBe(404);
    expect((await api.ask("GET", `/api/v1/admin/nodes/${UNKNOWN}/health-overrides`)).status).toBe(404);
    const { pool } = api.database.database;
    await pool.query(
      `insert into node_health_overrides (node_id, source, reason, set_by) select $1, 's' || n, 'r', 'operator:a' from generate_series(1, 32) n`,
      [id],
    );
    expect((await set(id, { template: "Degraded", message: "slow" })).problem?.detail).toContain("32 health overrides");
    await pool.query("update nodes set status = 'deleted' where id = $1", [id]);
    expect((await set(id, { template: "Degraded", message: "slow" })).problem?.detail).toContain("is deleted");
  });
});
