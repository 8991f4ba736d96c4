/** The list of operations of all kinds: its filters, orders, totals and pages. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OperationSummary } from "../../../shared/api/operations.ts";
import { SiteId } from "../../../shared/ids.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { addActiveNode } from "../../support/site-nodes.ts";

const PATH = "/api/v1/admin/operations";

describe("the list of operations", () => {
  let api: ApiHarness;
  let siteId: string;
  beforeAll(async () => {
    api = await startApi();
    const seeded = await seedApi(api);
    siteId = seeded.siteId;
    const other = await seedApi(api, "dc2");
    const onboard = async (hostname: string, ipmi_ip: string, { siteId: site_id, profileId, skuId } = seeded) => {
      const body = { site_id, profile_id: profileId, sku_id: skuId, hostname, ipmi_ip };
      expect((await api.ask("POST", "/api/v1/admin/onboardings", body)).status).toBe(202);
    };
    await onboard("c01u01", "10.0.0.1");
    await onboard("c01u02", "10.0.0.2");
    await onboard("d01u01", "10.0.0.1", other);
    for (const hostname of ["c02u01", "c02u02"]) {
      const host = { siteId: SiteId.parse(siteId), hostname };
      const id = await api.database.database.inTx((tx) => addActiveNode(tx, host));
      const path = `/api/v1/admin/nodes/${id}/${hostname === "c02u01" ? "drain" : "decommission"}`;
      const body = { reason: "a test", ...(hostname === "c02u01" ? {} : { mode: "soft_reset" }) };
      expect((await api.ask("POST", path, body)).status).toBe(202);
    }
    const { pool } = api.database.database;
    await pool.query(
      `update workflows set status = 'failed_retryable', failure_class = 'upstream_transient', failure_code = 'maas_timeout'
       where id in (select onboarding_id from node_onboardings where hostname = 'c01u02')`,
    );
    await pool.query(
      `update workflows set status = 'running', stage_entered_at = now() - interval '9 minutes', stage_deadline = now() + interval '1 minute'
       where id in (select decommission_id from node_decommissions where hostname = 'c02u01')`,
    );
    await pool.query(
      `update workflows set status = 'running', stage_entered_at = now() - interval '1 minute', stage_deadline = now() + interval '9 minutes'
       where id in (select decommission_id from node_decommissions where hostname = 'c02u02')`,
    );
  });
  afterAll(() => api.close());

  const list = async (query: string) => {
    const { status, body, problem } = await api.ask("GET", `${PATH}?${query}`);
    expect(status, JSON.stringify(problem)).toBe(200);
    return body as { items: OperationSummary[]; next_cursor: string | null; total: number | null };
  };
  const names = async (query: string) => (await list(query)).items.map(({ hostname }) => hostname);

  it("has onboardings and decommissions of every mode, newest first", async () => {
    const { items, total } = await list("include_total=true");
    expect(items.map(({ kind, hostname }) => [kind, hostname])).toEqual([
      ["soft_reset", "c02u02"],
      ["drain", "c02u01"],
      ["onboarding", "d01u01"],
      ["onboarding", "c01u02"],
      ["onboarding", "c01u01"],
    ]);
    expect(total).toBe(5);
    expect(await names("sort=requested_at&limit=2")).toEqual(["c01u01", "c01u02"]);
  });

  it.each([
    ["kind=drain,soft_reset", ["c02u02", "c02u01"]],
    ["kind=onboarding,drain&hostname_prefix=c0", ["c02u01", "c01u02", "c01u01"]],
    ["status=failed", ["c01u02"]],
    ["status=failed,running", ["c02u02", "c02u01", "c01u02"]],
    ["failure_class=upstream_transient", ["c01u02"]],
    ["hostname=c02u01", ["c02u01"]],
    ["slow=true", ["c02u01"]],
    ["slow=false&kind=drain", []],
    ["requested_by=nobody", []],
    ["sort=stage_deadline&limit=2", ["c02u01", "c02u02"]],
  ])("answers ?%s", async (query, expected) => {
    expect(await names(query)).toEqual(expected);
    if (query.includes("sort")) return;
    expect((await list(`${query}&include_total=true&limit=1`)).total).toBe(expected.length);
  });

  it("finds the operations of a site and of a node, and pages in every order", async () => {
    expect(await names(`site_id=${siteId}&kind=onboarding`)).toEqual(["c01u02", "c01u01"]);
    const [drain] = (await list("kind=drain")).items;
    expect(await names(`node_id=${drain?.node_id}`)).toEqual(["c02u01"]);
    for (const sort of ["-requested_at", "requested_at", "stage_deadline", "-stage_deadline"]) {
      const paged: string[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const page = await list(`sort=${sort}&limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
        paged.push(...page.items.map(({ hostname }) => hostname));
        cursor = page.next_cursor;
      }
      expect(paged, sort).toEqual(await names(`sort=${sort}`));
      expect(paged.toSorted()).toEqual(["c01u01", "c01u02", "c02u01", "c02u02", "d01u01"]);
    }
    const { next_cursor: cursor } = await list("limit=1");
    expect((await api.ask("GET", `${PATH}?sort=requested_at&cursor=${cursor}`)).status).toBe(400);
  });
});
