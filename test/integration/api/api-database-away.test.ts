import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isMigrated } from "../../../hub/db/migrate.ts";
import { sql } from "../../../hub/db/orm.ts";
import { within } from "../../../hub/timing/pause.ts";
import { startApiBehindProxy } from "../../support/api-behind-proxy.ts";
import type { ApiHarness } from "../../support/api-harness.ts";
import type { PostgresProxy } from "../../support/postgres-proxy.ts";

const sku = (id: string) => ({ id, description: "d", gpu_vendor: "amd", gpu_model: "m", gpus_total: 8 });

describe("the API during database trouble", () => {
  let proxy: PostgresProxy;
  let api: ApiHarness;
  let close: () => Promise<void>;

  beforeAll(async () => {
    ({ api, proxy, close } = await startApiBehindProxy());
  });
  afterAll(() => close?.());

  const skus = async (): Promise<string[]> => {
    const { rows } = await api.database.database.pool.query<{ id: string }>("select id from skus order by id");
    return rows.map((row) => row.id);
  };

  it("says whether a failed write may have happened, and replays such a write by its key", async () => {
    proxy.decide = (moment) => (moment === "statement" ? "lost_before" : "pass");
    const refused = await api.ask("POST", "/api/v1/admin/skus", sku("never"));
    expect(refused.problem).toMatchObject({ status: 503, code: "unavailable" });
    expect(await skus()).toEqual([]);

    const key = { "idempotency-key": randomUUID() };
    proxy.decide = (moment) => (moment === "commit" ? "lost_after" : "pass");
    const unknown = await api.ask("POST", "/api/v1/admin/skus", sku("known"), key);
    expect(unknown.problem).toMatchObject({ status: 503, code: "unavailable" });
    expect(unknown.problem.detail).toContain("may have taken effect");
    proxy.decide = () => "pass";
    expect(await skus()).toEqual(["known"]);
    expect((await api.ask("POST", "/api/v1/admin/skus", sku("known"), key)).status).toBe(201);
    expect(await skus()).toEqual(["known"]);
  });

  it("is ready with this version's schema or a newer one, but not with an older schema or without an answer", async () => {
    const { db } = api.database.database;
    const ready = async (): Promise<number> => (await api.ask("GET", "/readyz")).status;
    expect(await ready()).toBe(200);
    await db.execute(sql`insert into drizzle.__drizzle_migrations (hash, created_at) values ('newer', 9999999999999)`);
    expect([await isMigrated(db), await ready()]).toEqual([true, 200]);
    await db.execute(sql`update drizzle.__drizzle_migrations set created_at = 1`);
    expect([await isMigrated(db), await ready()]).toEqual([false, 503]);
    proxy.decide = () => "lost_before";
    expect(await ready()).toBe(503);

    proxy.decide = () => "pass";
    await db.execute(sql`update drizzle.__drizzle_migrations set created_at = 9999999999999`);
    expect(await ready()).toBe(200);
    proxy.silent = true;
    // The time limit of a statement is far longer than a balancer waits.
    expect(await within(20_000, ready())).toBe(503);
  });
});
