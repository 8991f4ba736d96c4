import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { until } from "../../support/until.ts";

const BATCHES = "/api/v1/admin/onboarding-batches";
const NOBODY = "00000000-0000-4000-8000-000000000000";
const reason = "the wrong rack";

describe("the API of batches", () => {
  let api: ApiHarness;
  let selectors: { site_id: string; profile_id: string; sku_id: string };
  let row = 0;
  beforeAll(async () => {
    api = await startApi();
    const { siteId, profileId, skuId } = await seedApi(api, "dc1");
    selectors = { site_id: siteId, profile_id: profileId, sku_id: skuId };
  });
  afterAll(() => api.close());

  const hosts = (count: number) =>
    Array.from({ length: count }, () => {
      row += 1;
      return { hostname: `c01u${row}`, ipmi_ip: `10.176.16.${row}` };
    });
  const create = (nodes: ReturnType<typeof hosts>, headers = {}) =>
    api.ask("POST", "/api/v1/admin/onboardings/batch", { ...selectors, nodes }, headers);
  const audits = async (action: string) =>
    (
      await api.database.database.pool.query("select target, reason, details from audit_logs where action = $1", [
        action,
      ])
    ).rows;

  it("creates one batch per key under repeated requests", async () => {
    const nodes = hosts(3);
    const key = { "idempotency-key": "night-shift-1" };
    const [first, second] = [await create(nodes, key), await create(nodes, key)];
    expect(first.status).toBe(202);
    expect(second.body).toEqual(first.body);
    const shown = await api.ask("GET", `${BATCHES}/${first.body.batch_id}`);
    expect(shown.body).toMatchObject({ total: 3, counts: { pending: 3 }, failures: [], done: false, ended_at: null });
  });

  it("lists batches page by page, newest first", async () => {
    await create(hosts(1));
    await create(hosts(2));
    const first = await api.ask("GET", `${BATCHES}?limit=2&site_id=${selectors.site_id}`);
    expect(first.body.items.map((one: { total: number }) => one.total)).toEqual([2, 1]);
    const rest = await api.ask("GET", `${BATCHES}?limit=2&cursor=${first.body.next_cursor}`);
    expect(rest.body.items.map((one: { total: number }) => one.total)).toEqual([3]);
    expect(rest.body.next_cursor).toBeNull();
    expect((await api.ask("GET", `${BATCHES}?cursor=bm9uc2Vuc2U`)).problem.errors?.[0]?.pointer).toBe("/cursor");
  });

  it("cancels a batch once, audits the reason, and leaves nothing to recover", async () => {
    const { batch_id } = (await create(hosts(2))).body;
    const path = `${BATCHES}/${batch_id}`;
    expect((await api.ask("POST", `${path}/cancel`, {})).problem.errors?.[0]?.pointer).toBe("/reason");
    const cancelled = await api.ask("POST", `${path}/cancel`, { reason });
    expect(cancelled.body).toMatchObject({ batch_id, applied: 2, skipped: 0 });
    expect((await api.ask("POST", `${path}/cancel`, { reason })).body).toMatchObject({ applied: 0, skipped: 0 });
    expect((await api.ask("POST", `${path}/recover`, { reason })).body).toMatchObject({ applied: 0, results: [] });
    expect((await api.ask("GET", path)).body).toMatchObject({ total: 2, cancelled: 2, done: true });
    const written = await audits("cancelOnboardingBatch");
    expect(written[0]).toMatchObject({ target: `onboarding-batches/${batch_id}`, reason, details: { applied: 2 } });
    expect((await audits("workflow.cancel")).map((one) => one.reason)).toEqual([reason, reason]);
  });

  it("answers not_found for an unknown batch", async () => {
    expect((await api.ask("GET", `${BATCHES}/${NOBODY}`)).problem.code).toBe("not_found");
    for (const verb of ["cancel", "recover"])
      expect((await api.ask("POST", `${BATCHES}/${NOBODY}/${verb}`, { reason })).problem.code).toBe("not_found");
  });

  it("cancels a batch although another transaction locks its rows in the opposite order", async () => {
    const { batch_id, onboardings } = (await create(hosts(2))).body;
    const ids = onboardings.map((one: { onboarding_id: string }) => one.onboarding_id).toSorted();
    const other = await api.database.database.pool.connect();
    const lock = (id: string) => other.query("select 1 from workflows where id = $1 for update", [id]);
    try {
      await other.query("begin");
      await lock(ids[1]);
      const cancelled = api.ask("POST", `${BATCHES}/${batch_id}/cancel`, { reason });
      await until("the cancel to wait for the row", async () => {
        const waiting = await api.database.database.pool.query(
          "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        return waiting.rows.length > 0 ? true : undefined;
      });
      // PostgreSQL aborts one of two transactions that wait for each other. The cancel of a batch succeeds even if PostgreSQL aborts the transaction
      // of the cancel.
      await lock(ids[0]).catch(() => undefined);
      await other.query("commit");
      expect(await cancelled).toMatchObject({ status: 200, body: { applied: 2, skipped: 0 } });
    } finally {
      other.release(true);
    }
  });
});
