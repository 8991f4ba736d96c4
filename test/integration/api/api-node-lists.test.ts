/** The filters, the search, the order, the totals and the facets of nodes, and their locations, through the API. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sql } from "../../../hub/db/orm.ts";
import { matches } from "../../../hub/db/queries/node-filter.ts";
import { nodeInventories, nodeMaasState, nodes } from "../../../hub/db/schema/index.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { type NodeId, SiteId } from "../../../shared/ids.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { addSchedulableNode } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApiWithSite } from "../../support/api-harness.ts";
import { addMachine, addNode } from "../../support/site-nodes.ts";

const NODES = "/api/v1/admin/nodes";

describe("the list of nodes", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  const ids: Record<string, NodeId> = {};
  beforeAll(async () => {
    ({ api, siteId } = await startApiWithSite());
    const { inTx, db } = api.database.database;
    for (const hostname of ["c01u01", "c01u02", "c02u01"])
      ids[hostname] = await inTx((tx) => addNode(tx, { siteId, hostname }));
    ids["d01u01"] = await inTx((tx) => addSchedulableNode(tx, { siteId, hostname: "d01u01", sku: "sku-dc1" }));
    const first = ids["c01u01"] as NodeId;
    await inTx((tx) => moveNode(tx, first, { from: "enrolling", to: "active", owner: "onboarding" }, "ready"));
    await db.insert(nodeMaasState).values({ nodeId: first, siteId, maasSystemId: "abc123", ipmiIp: "10.0.0.7" });
    await db.execute(sql`update nodes set host = '10.1.1.9' where id = ${first}`);
    await db.insert(nodeInventories).values({
      nodeId: first,
      inventory: {
        interfaces: [{ mac: "0C:42:A1:00:00:0F" }],
        disks: [{ serial: "S3Z8NB0K" }],
        system: { uuid: "4C4C-77" },
      },
    });
  });
  afterAll(() => api.close());

  const list = async (query: string) => (await api.ask("GET", `${NODES}?${query}`)).body;
  const names = async (query: string): Promise<string[]> =>
    (await list(query)).items.map(({ hostname }: { hostname: string }) => hostname);

  it("filters by several statuses, by schedulable, address and condition", async () => {
    expect(await names("status=active,retired")).toEqual(["c01u01", "d01u01"]);
    expect(await names("schedulable=true")).toEqual(["d01u01"]);
    expect(await names("schedulable=false")).toEqual(["c01u01", "c01u02", "c02u01"]);
    expect(await names("address=10.0.0.7")).toEqual(["c01u01"]);
    expect(await names("address=10.1.1.9")).toEqual(["c01u01"]);
    expect(await names("condition=agent.healthy:True")).toEqual(["d01u01"]);
    expect(await names("sku_id=sku-dc1,other")).toEqual(["d01u01"]);
  });

  it.each([
    ["a part of the hostname", "1u01", ["c01u01", "d01u01"]],
    ["the beginning of the host's address", "10.1.1.", ["c01u01"]],
    ["the beginning of the BMC's address", "10.0.0.", ["c01u01"]],
    ["a MAAS system id", "ABC123", ["c01u01"]],
    ["a MAC address in another notation", "0c42.a100.000f", ["c01u01"]],
    ["a disk's serial number", "s3z8nb0k", ["c01u01"]],
    ["the system UUID", "4c4c-77", ["c01u01"]],
    ["a text with the signs of a pattern", "%", []],
  ])("finds a node by %s", async (_, search, found) => {
    expect(await names(`search=${encodeURIComponent(search)}`)).toEqual(found);
  });

  it("sorts, counts all pages on request, and refuses a cursor of another order", async () => {
    expect(await names("sort=-hostname")).toEqual(["d01u01", "c02u01", "c01u02", "c01u01"]);
    const page = await list("sort=-hostname&limit=1&include_total=true");
    expect(page).toMatchObject({ total: 4, items: [{ hostname: "d01u01" }] });
    expect((await list("limit=1")).total).toBeNull();
    expect(await names(`sort=-hostname&limit=1&cursor=${page.next_cursor}`)).toEqual(["c02u01"]);
    const wrong = await api.ask("GET", `${NODES}?sort=hostname&cursor=${page.next_cursor}`);
    expect(wrong.problem).toMatchObject({ status: 400, errors: [{ pointer: "/cursor" }] });
    const forged = Buffer.from(JSON.stringify(["created_at", "yesterday", ids["c01u01"]])).toString("base64url");
    expect((await api.ask("GET", `${NODES}?sort=created_at&cursor=${forged}`)).status).toBe(400);
  });

  it("counts facets, each without its own filter", async () => {
    const { body } = await api.ask("GET", `${NODES}/facets?status=active`);
    expect(body.total).toBe(2);
    expect(body.facets.status.values).toEqual([
      { value: "active", count: 2 },
      { value: "enrolling", count: 2 },
    ]);
    expect(body.facets.schedulable.values).toEqual([
      { value: "false", count: 1 },
      { value: "true", count: 1 },
    ]);
    expect(body.facets.condition.values).toContainEqual({ value: "agent.healthy:True", count: 1 });
  });

  it("sets a location with the ETag of the location, and finds the node by it", async () => {
    const path = `${NODES}/${ids["c01u02"]}`;
    const etag = (await api.ask("GET", path)).headers.get("etag") ?? "";
    const location = { room: "A", rack: "r7", unit: 12 };
    const set = await api.ask("PATCH", path, { location }, { "if-match": etag });
    expect(set).toMatchObject({ status: 200, body: { location } });
    expect((await api.ask("PATCH", path, { location }, { "if-match": etag })).status).toBe(412);
    expect((await api.ask("PATCH", path, { location: { unit: 3 } }, { "if-match": etag })).problem.errors).toEqual([
      { pointer: "/location/unit", message: "needs a rack, because a unit is a place in a rack" },
    ]);
    expect(await names("rack=r7")).toEqual(["c01u02"]);
    expect(await names("sort=-location&limit=1")).toEqual(["c01u02"]);
    const now = (await api.ask("GET", path)).headers.get("etag") ?? "";
    const cleared = await api.ask("PATCH", path, { location: {} }, { "if-match": now });
    expect(cleared.body.location).toEqual({ room: null, rack: null, unit: null });
  });

  it("sets the locations of many hosts by their names, and tells which hosts it does not know", async () => {
    const items = [
      { hostname: "c02u01", rack: "r9", unit: 1 },
      { hostname: "nobody", rack: "r9", unit: 2 },
    ];
    const { status, body } = await api.ask("POST", `${NODES}/locations`, { site_id: siteId, items });
    expect(status).toBe(200);
    expect(body).toMatchObject({ set: 1, refused: 1 });
    expect(body.results[1]).toMatchObject({ node_id: null, refused_because: "Site dc1 has no node nobody." });
    expect((await list("rack=r9")).items[0].location).toEqual({ room: null, rack: "r9", unit: 1 });
    await api.ask("POST", `${NODES}/locations`, { site_id: siteId, items: [{ hostname: "c01u02", rack: "r9" }] });
    expect(await names("placed=true")).toEqual(["c02u01"]);
    expect(await names("placed=false&rack=r9")).toEqual(["c01u02"]);
    expect((await api.ask("GET", `${NODES}/facets?placed=false`)).body.total).toBe(3);
    const history = async (hostname: string) => {
      const { body: node } = await api.ask("GET", `${NODES}/${ids[hostname]}/lifecycle?kind=event&limit=100`);
      const events: { what: string; message: string; by: string }[] = node.items;
      return events.flatMap(({ what, message, by }) => (what === "located" ? [`${by}: ${message}`] : []));
    };
    expect(await history("c02u01")).toEqual(["operator:admin: rack r9, unit 1; no asset tag"]);
    await api.ask("POST", `${NODES}/locations`, { site_id: siteId, items: [items[0]] });
    expect(await history("c02u01"), "a request that changes nothing").toHaveLength(1);
    const path = `${NODES}/${ids["c02u01"]}`;
    const etag = { "if-match": (await api.ask("GET", path)).headers.get("etag") ?? "" };
    await api.ask("PATCH", path, { asset_tag: "INV-9" }, etag);
    expect((await history("c02u01")).at(-1)).toBe("operator:admin: rack r9, unit 1; asset tag INV-9");
    const twice = await api.ask("POST", `${NODES}/locations`, { site_id: siteId, items: [items[0], items[0]] });
    expect(twice.problem.errors?.[0]).toEqual({ pointer: "/items/1/hostname", message: "is named twice" });
  });

  it("sets asset tags, by which a search finds a node, and keeps the tag of a host whose request names none", async () => {
    const path = `${NODES}/${ids["c01u01"]}`;
    const etag = async () => ({ "if-match": (await api.ask("GET", path)).headers.get("etag") ?? "" });
    const set = await api.ask("PATCH", path, { asset_tag: "INV-4711/a" }, await etag());
    expect(set).toMatchObject({ status: 200, body: { asset_tag: "INV-4711/a", location: { rack: null } } });
    expect(await names("search=inv-4711/A")).toEqual(["c01u01"]);
    expect(await names("search=INV-4711")).toEqual([]);
    const many = async (tags: Record<string, string | null | undefined>) => {
      const items = Object.entries(tags).map(([hostname, asset_tag]) => ({ hostname, rack: "r8", asset_tag }));
      const { body } = await api.ask("POST", `${NODES}/locations`, { site_id: siteId, items });
      expect(body).toMatchObject({ set: items.length, refused: 0 });
      return (await list("rack=r8")).items.map((one: { asset_tag: string | null }) => one.asset_tag);
    };
    expect(await many({ c01u01: undefined, c01u02: "INV-2" })).toEqual(["INV-4711/a", "INV-2"]);
    const before = await etag();
    expect(await many({ c01u01: null, c01u02: "INV-2" })).toEqual([null, "INV-2"]);
    expect(await etag(), "a change of the asset tag is a new version of the node").not.toEqual(before);
    expect((await api.ask("PATCH", path, { asset_tag: " " }, await etag())).problem.errors).toMatchObject([
      { pointer: "/asset_tag" },
    ]);
  });

  it("keeps the location of a request for an onboarding", async () => {
    const { default_profile_id } = (await api.ask("GET", `/api/v1/admin/maas-sites/${siteId}`)).body;
    const location = { room: "B", rack: "r2", unit: 3 };
    const created = await api.ask("POST", "/api/v1/admin/onboardings", {
      site_id: siteId,
      profile_id: default_profile_id,
      sku_id: "sku-dc1",
      hostname: "e01u01",
      ipmi_ip: "10.0.0.8",
      location,
    });
    expect(created.status).toBe(202);
    const shown = await api.ask("GET", `/api/v1/admin/onboardings/${created.body.onboarding_id}`);
    expect(shown.body.location).toEqual(location);
  });

  it("finds a node by what only MAAS knows about its machine, at the machine's own site", async () => {
    const { inTx, db } = api.database.database;
    const other = SiteId.parse((await seedApi(api, "dc2")).siteId);
    const macs = ["0c:42:a1:00:00:aa", "0c:42:a1:00:00:ab"];
    const facts = JSON.stringify({ macs, hardware_uuid: "4C4C4544-0042", serial: "7HX2NB0" });
    await inTx(async (tx) => {
      for (const site of [siteId, other]) {
        const host = { siteId: site, hostname: "g01u01" };
        await addMachine(tx, { ...host, nodeId: await addNode(tx, host) }, { status: MAAS_STATUS.deployed });
      }
      await tx.execute(sql`update maas_machines set details = ${facts} where site_id = ${siteId}`);
    });
    const token = { name: "of-dc2", role: "viewer", site_ids: [other], expires_in_days: 1 };
    const made = await api.ask("POST", "/api/v1/admin/tokens", token);
    const ofOther = { authorization: `Bearer ${made.body.token}` };
    expect((await api.ask("GET", `${NODES}?search=g01u01`, undefined, ofOther)).body.items).toHaveLength(1);
    for (const search of ["0C-42-A1-00-00-AB", "4c4c4544-0042", "7hx2nb0"]) {
      const found = await list(`search=${search}&include_total=true`);
      expect(found, search).toMatchObject({ total: 1, items: [{ hostname: "g01u01", site_id: siteId }] });
      const { body } = await api.ask("GET", `${NODES}/facets?search=${search}`);
      expect(body).toMatchObject({ total: 1, facets: { site_id: { values: [{ value: siteId, count: 1 }] } } });
      for (const path of [`${NODES}?include_total=true&`, `${NODES}/facets?`]) {
        const hidden = await api.ask("GET", `${path}search=${search}`, undefined, ofOther);
        expect(hidden.body.total, `${search} at another site`).toBe(0);
      }
    }
    expect(await names("search=7HX2NB")).toEqual([]);

    await db.execute(sql`insert into maas_machines (site_id, system_id, hostname, status, status_name, status_message, error_description, power_state,
        locked, ip_addresses, details)
      select ${siteId}, 'm' || n, 'm' || n, 6, '', '', '', 'on', false, '{}', jsonb_build_object('serial', 'S' || n) from generate_series(1, 2000) n`);
    await db.execute(sql`analyze maas_machines`);
    const query = db
      .select()
      .from(nodes)
      .where(matches({ search: "7hx2nb0" }));
    const { rows: plan } = await db.execute(sql`explain (format json) ${query}`);
    expect(JSON.stringify(plan), "the search reads the machines by their index").toContain("maas_machines_search_idx");
  });
});
