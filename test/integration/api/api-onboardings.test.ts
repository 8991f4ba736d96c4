import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordDomainEvent } from "../../../hub/db/queries/domain-events.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";

const ONBOARDINGS = "/api/v1/admin/onboardings";
const SITES = "/api/v1/admin/maas-sites";

describe("the API of onboardings", () => {
  let api: ApiHarness;
  let selectors: { site_id: string; profile_id: string; sku_id: string };
  beforeAll(async () => {
    api = await startApi();
    const { siteId, profileId, skuId } = await seedApi(api, "dc1");
    selectors = { site_id: siteId, profile_id: profileId, sku_id: skuId };
  });
  afterAll(() => api.close());

  const refused = async (body: unknown, path = ONBOARDINGS) => {
    const before = await api.counts();
    const answer = await api.ask("POST", path, body);
    expect(await api.counts()).toEqual(before);
    return answer.problem;
  };

  it("accepts a host, shows it, and refuses the same host or BMC again, naming the existing onboarding", async () => {
    const host = { ...selectors, hostname: "c07u43", ipmi_ip: "10.176.16.128" };
    const created = await api.ask("POST", ONBOARDINGS, host);
    expect(created.status).toBe(202);
    expect(created.body).toMatchObject({ status: "pending" });
    const shown = await api.ask("GET", `${ONBOARDINGS}/${created.body.onboarding_id}`);
    expect(shown.body).toMatchObject({
      hostname: "c07u43",
      ipmi_ip: "10.176.16.128",
      status: "pending",
      current_stage: "load_site_config",
      requested_by: "admin",
      node_id: created.body.node_id,
    });
    for (const other of [{ hostname: "c07u99" }, { ipmi_ip: "10.1.1.1" }]) {
      const problem = await refused({ ...host, ...other });
      expect(problem.code).toBe("onboarding_exists");
      expect(JSON.stringify(problem)).toContain(created.body.onboarding_id);
    }
  });

  it("refuses an unknown SKU, site or profile, a disabled site, and a wrong value, and writes nothing", async () => {
    const host = { ...selectors, hostname: "c07u50", ipmi_ip: "10.176.16.150" };
    const nobody = "00000000-0000-4000-8000-000000000000";
    expect(await refused({ ...host, sku_id: "no-such-sku" })).toMatchObject({ code: "sku_unknown", status: 422 });
    expect((await refused({ ...host, site_id: nobody })).status).toBe(422);
    expect((await refused({ ...host, profile_id: nobody })).status).toBe(422);
    expect((await refused({ ...host, hostname: "Under_score" })).errors?.[0]?.pointer).toBe("/hostname");
    expect((await refused({ ...host, ipmi_ip: "10.0.0.999" })).errors?.[0]?.pointer).toBe("/ipmi_ip");
    const other = await seedApi(api, "off");
    await api.ask("DELETE", `${SITES}/${other.siteId}`);
    expect((await refused({ ...host, site_id: other.siteId, profile_id: other.profileId })).code).toBe("site_disabled");
  });

  it("accepts a batch completely or not at all, and names the wrong rows", async () => {
    const nodes = [
      { hostname: "c08u01", ipmi_ip: "10.176.17.1" },
      { hostname: "c08u02", ipmi_ip: "10.176.17.2" },
    ];
    const doubled = await refused(
      { ...selectors, nodes: [...nodes, { hostname: "c08u01", ipmi_ip: "10.176.17.3" }] },
      `${ONBOARDINGS}/batch`,
    );
    expect(doubled.errors?.[0]?.pointer).toBe("/nodes/2/hostname");
    const taken = await refused(
      { ...selectors, nodes: [...nodes, { hostname: "c07u43", ipmi_ip: "10.176.17.9" }] },
      `${ONBOARDINGS}/batch`,
    );
    expect(taken.errors?.map((error) => error.pointer)).toEqual(["/nodes/2/hostname"]);
    const batch = await api.ask("POST", `${ONBOARDINGS}/batch`, { ...selectors, nodes });
    expect(batch.body.onboardings.map((one: { hostname: string }) => one.hostname)).toEqual(["c08u01", "c08u02"]);
    const list = await api.ask("GET", `${ONBOARDINGS}?batch_id=${batch.body.batch_id}`);
    expect(list.body.items).toHaveLength(2);
    const summary = await api.ask("GET", `/api/v1/admin/onboarding-batches/${batch.body.batch_id}`);
    expect(summary.body).toMatchObject({ total: 2, counts: { pending: 2 }, done: false });
  });

  it("cancels once under repeated requests, frees the host, and audits the reason", async () => {
    const created = await api.ask("POST", ONBOARDINGS, { ...selectors, hostname: "c09u01", ipmi_ip: "10.176.18.1" });
    const cancel = `${ONBOARDINGS}/${created.body.onboarding_id}/cancel`;
    expect((await api.ask("POST", cancel, {})).problem.errors?.[0]?.pointer).toBe("/reason");
    expect((await api.ask("POST", cancel, { reason: "wrong rack" })).body.status).toBe("cancelled");
    expect((await api.ask("POST", cancel, { reason: "double click" })).body.status).toBe("cancelled");
    expect(
      (await api.ask("POST", `${ONBOARDINGS}/${created.body.onboarding_id}/retry`, { reason: "again" })).problem.code,
    ).toBe("verb_not_allowed");
    const { rows } = await api.database.database.pool.query(
      "select reason, details from audit_logs where action = 'workflow.cancel' order by id",
    );
    expect(rows.map((row) => row.reason)).toContain("wrong rack");
    expect(
      (await api.ask("POST", ONBOARDINGS, { ...selectors, hostname: "c09u01", ipmi_ip: "10.176.18.1" })).status,
    ).toBe(202);
  });

  it("lists domain events from a cursor on", async () => {
    const events = "/api/v1/admin/events";
    await api.database.database.inTx(async (tx) => {
      for (const n of [1, 2, 3, 4, 5])
        await recordDomainEvent(tx, {
          type: "node.status.changed",
          subject: `nodes/${n}`,
          data: { node_id: "n", hostname: "h", from: "offline", to: "active", owner: "heartbeat" },
        });
    });
    const all = (await api.ask("GET", `${events}?limit=200`)).body;
    expect(all.items.length).toBeGreaterThanOrEqual(5);
    const pages: { items: unknown[]; next_cursor: string | null }[] = [];
    for (let cursor: string | null = ""; cursor !== null && pages.length < all.items.length; ) {
      const { body } = await api.ask("GET", `${events}?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
      pages.push(body);
      cursor = body.next_cursor;
    }
    expect(pages.flatMap(({ items }) => items)).toEqual(all.items);
    const [first] = pages;
    expect((await api.ask("GET", `${events}?limit=200&cursor=${first?.next_cursor}`)).body.items).toEqual(
      all.items.slice(2),
    );
    expect(
      all.items.every(
        (event: { specversion: string; type: string }) => event.specversion === "1.0" && event.type.startsWith("node."),
      ),
    ).toBe(true);
  });

  it("answers not_found for an unknown node or task", async () => {
    const nobody = "00000000-0000-4000-8000-000000000000";
    for (const path of [
      `/api/v1/admin/nodes/${nobody}`,
      `/api/v1/admin/tasks/${nobody}`,
      `${ONBOARDINGS}/${nobody}`,
      `/api/v1/admin/onboarding-batches/${nobody}`,
    ])
      expect((await api.ask("GET", path)).problem.code).toBe("not_found");
    expect((await api.ask("GET", "/api/v1/admin/nodes/not-a-uuid")).problem.errors?.[0]?.pointer).toBe("/id");
    expect(
      (
        await api.ask("POST", `/api/v1/admin/nodes/${nobody}/tasks`, {
          type: "node.heartbeat_check",
          input: { nonce: "x" },
        })
      ).problem.code,
    ).toBe("not_found");
  });
});
