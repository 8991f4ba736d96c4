import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROUTES } from "../../../hub/http/routes/index.ts";
import type { DriftDetails } from "../../../shared/drift.ts";
import { ONBOARDING_STAGES } from "../../../shared/workflow-status.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { type ApiAnswer, crawlApi } from "../../support/crawl-api.ts";
import { seedTroubledFleet } from "../../support/troubled-fleet.ts";

const READS = ROUTES.filter((route) => route.method === "GET" && route.stream === undefined);

/** Tells whether a requested path belongs to the route, with ids filled in and an optional query. */
const isOf = (path: string, asked: string): boolean =>
  new RegExp(`^${path.replace(/\{\w+\}/g, "[^/?]+")}([?]|$)`).test(asked);

const DRIFT: DriftDetails = {
  rule: "hardware_failure",
  severity: "high",
  action: "none",
  maas_status: "Broken",
  maas_status_code: 8,
  expected: "Deployed",
  message: "Its machine is broken",
  detected_at: "2026-01-01T00:00:00.000Z",
  held_back: null,
};

/** Adds the fields that the API would have written and the fleet of the diagnostics tests lacks. */
async function mend(api: ApiHarness): Promise<void> {
  const { pool } = api.database.database;
  const { rows } = await pool.query<{ id: string }>(
    "update maas_sites set upstream_dns_servers = '{10.0.0.53}' returning id",
  );
  for (const { id } of rows) {
    const profile = await api.ask("POST", `/api/v1/admin/maas-sites/${id}/profiles`, { name: "default" });
    await pool.query("update maas_sites set default_profile_id = $2 where id = $1", [id, profile.body.id]);
  }
  await pool.query("update workflows set stage = $1", [ONBOARDING_STAGES[0]]);
  await pool.query("update node_maas_state set drift_details = $1", [JSON.stringify(DRIFT)]);
}

describe("every route that reads", () => {
  let api: ApiHarness;
  let answers: readonly ApiAnswer[];
  beforeAll(async () => {
    api = await startApi();
    const { pool } = api.database.database;
    await seedTroubledFleet(pool, 1);
    await mend(api);
    const { siteId, profileId, skuId } = await seedApi(api, "dc9");
    const about = { site_id: siteId, profile_id: profileId, sku_id: skuId };
    const nodes = [{ hostname: "c07u41", ipmi_ip: "10.0.9.41" }];
    const begun = await api.ask("POST", "/api/v1/admin/onboardings/batch", { ...about, nodes });
    expect(begun.body).toMatchObject({ batch_id: expect.any(String) });
    const { rows } = await pool.query("select id from nodes");
    const drained = await api.ask("POST", `/api/v1/admin/nodes/${rows[0]?.id}/drain`, { reason: "to be read" });
    expect(drained.status, JSON.stringify(drained.problem)).toBe(202);
    answers = await crawlApi(await api.listen(), api.admin, pool);
  });
  afterAll(() => api.close());

  it("is requested for something that exists", () => {
    expect(READS.filter(({ path }) => !answers.some((one) => isOf(path, one.path))).map(({ path }) => path)).toEqual(
      [],
    );
  });

  it.each(READS.map((route) => [route.operationId, route] as const))(
    "%s answers as its schema promises",
    (_, route) => {
      const own = answers.filter((one) => isOf(route.path, one.path));
      expect(own.filter(({ status }) => status !== route.status)).toEqual([]);
      for (const { text } of own) {
        const answer = JSON.parse(text.slice(text.indexOf("\n{") + 1));
        // Parsing drops a field that the schema does not have.
        expect(route.response.parse(answer)).toEqual(answer);
      }
    },
  );
});
