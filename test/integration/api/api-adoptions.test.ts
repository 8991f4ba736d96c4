import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adoptMachines } from "../../../hub/adoption/adopt-machines.ts";
import { type Database, openDatabase } from "../../../hub/db/client.ts";
import { setHealthOverride } from "../../../hub/node/health-override.ts";
import { AdoptionCreate, type AdoptionCreated } from "../../../shared/api/adoptions.ts";
import { NodeId, SiteId } from "../../../shared/ids.ts";
import { AdoptionWorld } from "../../support/adoption-world.ts";
import { seedApi } from "../../support/api-harness.ts";
import { quietLog } from "../../support/log.ts";

const ADMIN = "/api/v1/admin";
const codesOf = (answer: { body: AdoptionCreated }, index = 0) =>
  answer.body.machines[index]?.refusals.map(({ code }) => code);

describe.each(["3.5.12", "3.7.3"] as const)("running machines of MAAS %s", (version) => {
  let world: AdoptionWorld;
  beforeAll(async () => {
    world = await AdoptionWorld.start(version);
  });
  afterAll(() => world?.close());

  it("become nodes that are bound to their machines, and nothing changes in MAAS", async () => {
    const machines = ["run-1", "run-2", "run-3"].map((name) => world.deployed(name));
    await world.poll();
    const before = await world.region.sim.region.state.machines.map((one) => JSON.stringify(one));
    const body = { system_ids: machines.slice(0, 2).map(({ systemId }) => systemId), hostnames: ["run-3"] };
    const planned = await world.plan(body);
    expect(planned.body).toMatchObject({
      plan: true,
      matched: 3,
      adopted: 3,
      existing: 0,
      refused: 0,
      differences: [],
    });
    expect(planned.body.machines.map((one: { node_id: unknown }) => one.node_id)).toEqual([null, null, null]);
    expect((await world.api.ask("GET", `${ADMIN}/nodes?site_id=${world.siteId}`)).body.items).toEqual([]);

    const adopted = await world.adopt(body);
    expect(adopted.body).toMatchObject({ plan: false, matched: 3, adopted: 3, existing: 0, refused: 0 });
    const [first] = adopted.body.machines;
    expect(await world.node(first.node_id)).toMatchObject({
      hostname: "run-1",
      host: "10.99.0.1",
      onboarding_mode: "adopted",
      status: "bootstrap_issued",
      schedulable: false,
      unschedulable_reasons: expect.arrayContaining(["the node is bootstrap_issued"]),
      maas_system_id: machines[0]?.systemId,
      maas: { status: "Deployed" },
      adoption: { adopted_by: "admin", past_unknown: true, next_action: expect.stringContaining("Order a command") },
      conditions: expect.arrayContaining([expect.objectContaining({ type: "adoption.identity", status: "Unknown" })]),
    });
    await world.poll();
    expect(world.region.sim.region.state.machines.map((one) => JSON.stringify(one))).toEqual(before);
    expect(world.writesToMaas()).toEqual({});
  });

  it("are adopted once: a repeated request says which nodes exist, with and without an Idempotency-Key", async () => {
    const machine = world.deployed("once-1");
    await world.poll();
    const body = { system_ids: [machine.systemId] };
    const first = await world.adopt(body, { "idempotency-key": `once-${version}` });
    const again = await world.adopt(body, { "idempotency-key": `once-${version}` });
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(again.body).toEqual(first.body);
    const third = await world.adopt(body);
    expect(third.body).toMatchObject({ adopted: 0, existing: 1, refused: 0 });
    expect(third.body.machines[0]).toMatchObject({ outcome: "exists", node_id: first.body.machines[0].node_id });
  });

  it("are adopted once by two requests at once", async () => {
    const machines = Array.from({ length: 20 }, (_, n) => world.deployed(`race-${n}`));
    await world.poll();
    const ids = machines.map(({ systemId }) => systemId);
    const halves = [ids.slice(0, 15), ids.slice(5)];
    const answers = await Promise.all(halves.map((system_ids) => world.adopt({ system_ids })));
    const counts = answers.map(({ body }) => [body.adopted, body.existing, body.refused]);
    expect(counts.toSorted()).toEqual(
      [
        [15, 0, 0],
        [5, 10, 0],
      ].toSorted(),
    );
    const nodes = answers.flatMap(({ body }) =>
      (body as AdoptionCreated).machines.map((one) => `${one.system_id} ${one.node_id}`),
    );
    expect(new Set(nodes).size).toBe(20);
  });

  it("are selected by tags, pool, zone and the beginning of their names, and a filter that matches another number adopts nothing", async () => {
    world.deployed("rack1-a", (one) => void Object.assign(one, { tags: ["gpu", "h100"], pool: "default" }));
    world.deployed("rack1-b", (one) => void Object.assign(one, { tags: ["gpu"] }));
    const other = world.deployed("rack1-c", (one) => void Object.assign(one, { tags: ["gpu", "h100"] }));
    world.status(other, "ready");
    await world.poll();
    const named = async (filter: object) =>
      (await world.plan({ filter })).body.machines.map((one: { hostname: string }) => one.hostname);
    expect(await named({ tags: ["gpu"] })).toEqual(["rack1-a", "rack1-b"]);
    expect(await named({ tags: ["gpu", "h100"] })).toEqual(["rack1-a"]);
    expect(await named({ hostname_prefix: "rack1-" })).toEqual(["rack1-a", "rack1-b"]);
    expect(await named({ hostname_prefix: "rack1-", pool: "default", zone: "default" })).toEqual([
      "rack1-a",
      "rack1-b",
    ]);
    expect(await named({ pool: "none" })).toEqual([]);
    expect(await named({ zone: "none", tags: ["gpu"] })).toEqual([]);
    const wrong = await world.adopt({ filter: { tags: ["gpu"] }, expected_count: 3 });
    expect(wrong.problem).toMatchObject({
      code: "count_mismatch",
      detail: expect.stringContaining("2 Deployed machines"),
    });
    const right = await world.adopt({ filter: { tags: ["gpu"] }, expected_count: 2 });
    expect(right.body).toMatchObject({ matched: 2, adopted: 2 });
    expect((await world.adopt({ filter: { tags: ["gpu"] }, expected_count: 2 })).body).toMatchObject({ existing: 2 });
  });

  it("are compared with hardware sync, RoCE rows, owner and image, and a difference refuses unless the request accepts it", async () => {
    const machine = world.deployed("differs-1", (one) => {
      one.enableHwSync = false;
      one.owner = "bob";
      one.distroSeries = "jammy";
      one.locked = true;
    });
    await world.api.ask("POST", `${ADMIN}/maas-sites/${world.siteId}/roce-assignments`, {
      items: [{ hostname: "differs-1", interface: "rail0", ipv4_cidr: "172.30.0.1/31" }],
    });
    await world.poll();
    const body = { system_ids: [machine.systemId] };
    const refused = await world.adopt(body);
    expect(refused.body).toMatchObject({ adopted: 0, refused: 1 });
    const kinds = refused.body.differences.map((one: { kind: string }) => one.kind);
    expect(kinds).toEqual(["hardware_sync_off", "roce_missing", "other_owner", "other_image", "locked"]);
    expect(codesOf(refused)).toEqual(["difference"]);
    const some = await world.adopt({ ...body, accept_differences: kinds.slice(1) });
    expect(some.body.machines[0].refusals[0].message).toContain("(hardware_sync_off)");
    // The hub has compared no GPUs, and must not look as if it had.
    expect(some.body.machines[0].gpus).toMatchObject({
      found: "unknown",
      message: expect.stringContaining("adoption.gpus"),
    });
    const accepted = await world.adopt({ ...body, accept_differences: kinds });
    expect(accepted.body).toMatchObject({ adopted: 1, refused: 0 });
    const { adoption } = await world.node(accepted.body.machines[0].node_id);
    expect(adoption.differences.map((one: { kind: string }) => one.kind)).toEqual(kinds);
    expect(adoption.differences[0].message).toContain("After the host's agent has enrolled");
  });

  it("are refused if they were released or taken between the plan and the request", async () => {
    const [released, gone, taken] = ["late-1", "late-2", "late-3"].map((name) => world.deployed(name));
    await world.poll();
    const body = { hostnames: ["late-1", "late-2", "late-3", "never-seen"] };
    expect((await world.plan(body)).body).toMatchObject({ adopted: 3, refused: 1 });
    if (released === undefined || gone === undefined || taken === undefined) throw new Error("no machines");
    world.status(released, "ready");
    await world.poll();
    const { state } = world.region.sim.region;
    state.machines = state.machines.filter((one) => one !== gone);
    const manual = { onboarding_mode: "manual", hostname: "late-3", sku_id: world.skuId, region_code: "r1" };
    await world.api.ask("POST", `${ADMIN}/nodes`, { ...manual, site_id: world.siteId });
    const answer = await world.adopt(body);
    expect(answer.body).toMatchObject({ adopted: 0, existing: 0, refused: 4 });
    const codes = new Map(
      (answer.body as AdoptionCreated).machines.map((one) => [one.hostname, one.refusals.map(({ code }) => code)]),
    );
    expect(Object.fromEntries(codes)).toEqual({
      "late-1": ["not_deployed"],
      "late-2": ["machine_gone"],
      "late-3": ["hostname_taken"],
      "never-seen": ["machine_unknown"],
    });
  });

  it("have drift from the first minute, although their agents are missing, and nobody acts on it", async () => {
    const machine = world.deployed("drift-1");
    await world.poll();
    const id = await world.adopted(machine);
    const driftOf = async () => (await world.api.ask("GET", `${ADMIN}/reconciliation/drift?node_id=${id}`)).body.items;
    await world.poll();
    expect(await driftOf()).toEqual([]);
    world.status(machine, "ready");
    await world.poll();
    expect(await driftOf()).toMatchObject([{ drift_details: { rule: "released_outside", action: "none" } }]);
    expect(await world.node(id)).toMatchObject({ status: "bootstrap_issued", schedulable: false });
    world.change(machine, (one) => {
      world.region.sim.region.forceStatus(one, 6);
      one.owner = "admin";
      one.powerState = "off";
    });
    await world.poll();
    expect(await driftOf()).toMatchObject([{ drift_details: { rule: "powered_off", action: "none" } }]);
  });

  it("can be removed again before their agents enroll, and the machine stays as it is", async () => {
    const machine = world.deployed("again-1");
    await world.poll();
    const id = await world.adopted(machine);
    expect((await world.api.ask("POST", `${ADMIN}/nodes/${id}/remove`, { reason: "a mistake" })).status).toBe(202);
    expect(await world.node(id)).toMatchObject({ status: "retired" });
    expect(world.writesToMaas()).toEqual({});
  });

  it("keep the health override of an earlier node of the machine, and no other machine gets it", async () => {
    const [machine, other] = [world.deployed("barred-1"), world.deployed("barred-2")];
    await world.poll();
    const former = await world.adopted(machine);
    const override = { source: "disk-erase", target: machine.systemId, reason: "not erased", setBy: "operator:ann" };
    const { inTx, pool } = world.api.database.database;
    await inTx((tx) => setHealthOverride(tx, { ...override, nodeId: NodeId.parse(former) }));
    await pool.query("update nodes set status = 'deleted' where id = $1", [former]);
    const { machines } = (await world.adopt({ system_ids: [machine.systemId, other.systemId] }))
      .body as AdoptionCreated;
    const overrides = async (index: number) =>
      (await world.node(machines[index]?.node_id ?? "")).health_overrides.map((one: { source: string }) => one.source);
    expect([await overrides(0), await overrides(1)]).toEqual([["disk-erase"], []]);
  });

  it("are not onboarded while they are adopted nodes", async () => {
    const machine = world.deployed("busy-1");
    await world.poll();
    await world.adopted(machine);
    const selectors = { site_id: world.siteId, profile_id: world.profileId, sku_id: world.skuId };
    const answer = await world.api.ask("POST", `${ADMIN}/onboardings`, {
      ...selectors,
      hostname: "busy-1",
      ipmi_ip: "10.1.1.1",
    });
    expect(answer.problem).toMatchObject({ code: "conflict", detail: expect.stringContaining("is a node already") });
  });
});

describe("a request for an adoption", () => {
  let world: AdoptionWorld;
  beforeAll(async () => {
    world = await AdoptionWorld.start();
  });
  afterAll(() => world?.close());

  it("is refused while the hub does not know the state of the machines", async () => {
    const machine = world.deployed("unseen-1");
    const answer = await world.adopt({ system_ids: [machine.systemId] });
    expect(answer.problem).toMatchObject({
      code: "unavailable",
      detail: expect.stringContaining("has not read the machines"),
    });
    await world.poll();
    await world.api.database.database.pool.query(
      "update maas_site_watches set last_poll_at = now() - interval '10 minutes'",
    );
    expect((await world.adopt({ system_ids: [machine.systemId] })).problem.detail).toContain("for 600 s");
    await world.poll();
    expect((await world.adopt({ system_ids: [machine.systemId] })).body).toMatchObject({ adopted: 1 });
  });

  it("adopts nothing while MAAS does not answer, and says so", async () => {
    const machine = world.deployed("away-1");
    await world.poll();
    world.region.sim.faults.add({ match: { op: "power_parameters" }, kind: "status", code: 503, times: 1 });
    const answer = await world.adopt({ system_ids: [machine.systemId] });
    expect(answer.problem).toMatchObject({
      code: "unavailable",
      detail: expect.stringContaining("nothing was adopted"),
    });
    expect((await world.adopt({ system_ids: [machine.systemId] })).body).toMatchObject({ adopted: 1 });
  });

  it("names what it lacks: machines, a count, a site, an SKU, a profile", async () => {
    const of = async (body: object) => (await world.adopt(body)).problem;
    expect(await of({})).toMatchObject({ code: "validation_failed" });
    expect(await of({ filter: {} })).toMatchObject({ code: "validation_failed" });
    expect(await of({ filter: { pool: "a" } })).toMatchObject({ errors: [{ pointer: "/expected_count" }] });
    expect(await of({ filter: { pool: "a" }, system_ids: ["abc"], expected_count: 1 })).toMatchObject({
      code: "validation_failed",
    });
    expect(await of({ system_ids: ["a/b"] })).toMatchObject({ code: "validation_failed" });
    expect(await of({ hostnames: ["=cmd"] })).toMatchObject({ code: "validation_failed" });
    expect(await of({ filter: { tags: ["a,b"] }, plan: true })).toMatchObject({ code: "validation_failed" });
    expect(await of({ system_ids: Array.from({ length: 2001 }, (_, n) => `m${n}`) })).toMatchObject({
      code: "validation_failed",
    });
    expect(await of({ hostnames: ["a"], sku_id: "none" })).toMatchObject({ code: "sku_unknown" });
    expect(await of({ hostnames: ["a"], profile_id: "00000000-0000-4000-8000-000000000000" })).toMatchObject({
      code: "reference_unknown",
    });
    const nowhere = `${ADMIN}/maas-sites/00000000-0000-4000-8000-000000000000/adoptions`;
    expect((await world.api.ask("POST", nowhere, { sku_id: world.skuId, hostnames: ["a"] })).status).toBe(404);
    expect((await of({ system_ids: ["abc';drop table nodes--"] })).code).toBe("validation_failed");
    expect((await world.plan({ filter: { tags: ["a') or 1=1 --"] } })).body).toMatchObject({ matched: 0 });
  });

  it("refuses machines of one name, and hostnames that no node can have", async () => {
    const [one, two] = [world.deployed("twin"), world.deployed("twin")];
    const odd = world.deployed("=HYPERLINK()");
    await world.poll();
    const answer = await world.adopt({ system_ids: [one, two, odd].map(({ systemId }) => systemId) });
    const codes = (answer.body as AdoptionCreated).machines.map(({ refusals }) => refusals.map(({ code }) => code));
    expect(codes.toSorted()).toEqual([["hostname_ambiguous"], ["hostname_ambiguous"], ["hostname_invalid"]]);
  });

  it("tells hosts with one BMC address apart from others", async () => {
    const shared = (one: { powerParameters: Record<string, string> }): void => {
      one.powerParameters = { power_address: "10.1.2.3" };
    };
    const [one, two] = [world.deployed("bmc-1", shared), world.deployed("bmc-2", shared)];
    await world.poll();
    const both = await world.plan({ system_ids: [one.systemId, two.systemId] });
    expect(both.body).toMatchObject({ refused: 2, differences: [{ kind: "bmc_shared", machines: 2 }] });
  });
});

describe("two hubs on one database", () => {
  let world: AdoptionWorld;
  let hubs: Database[];
  let twin: SiteId;
  beforeAll(async () => {
    world = await AdoptionWorld.start();
    const { url } = world.api.database;
    hubs = ["a", "b"].map((name) => openDatabase({ url, poolSize: 2, applicationName: `hub-${name}`, log: quietLog }));
    twin = SiteId.parse((await seedApi(world.api, "twin")).siteId);
  });
  afterAll(async () => {
    for (const { pool } of hubs) await pool.end();
    await world?.close();
  });

  /** Writes the machines of the site as machines of the other site too, as if both sites were one MAAS region by mistake. */
  async function showAtTwin(): Promise<void> {
    const { pool } = world.api.database.database;
    for (const table of ["maas_machines", "maas_site_watches"])
      await pool.query(
        `insert into ${table} select (jsonb_populate_record(null::${table}, to_jsonb(t) || jsonb_build_object('site_id', $1::text))).*
           from ${table} t where site_id = $2 on conflict do nothing`,
        [twin, world.siteId],
      );
  }
  const adoptAt = (hub: number, siteId: SiteId, systemIds: readonly string[], bmc = "10.1.1.") => {
    const request = AdoptionCreate.parse({
      sku_id: world.skuId,
      system_ids: systemIds,
      accept_differences: ["bmc_unknown"],
    });
    const bmcs = new Map(systemIds.map((id, n) => [id, bmc === "" ? "" : `${bmc}${n}`]));
    const asked = { username: "admin", bmcs };
    return hubs[hub]?.inTx((tx) => adoptMachines(tx, siteId, request, asked, `hub-${hub}`));
  };
  const counts = (answer: AdoptionCreated | undefined) => [answer?.adopted, answer?.existing, answer?.refused];

  it("adopt one list at once: each machine gets one node, and the second answer names the nodes of the first", async () => {
    const ids = Array.from({ length: 20 }, (_, n) => world.deployed(`list-${n}`).systemId);
    await world.poll();
    const answers = await Promise.all([0, 1].map((hub) => adoptAt(hub, world.siteId, ids)));
    expect(answers.map(counts).toSorted()).toEqual([
      [0, 20, 0],
      [20, 0, 0],
    ]);
    const nodesIn = (answer: AdoptionCreated | undefined) => answer?.machines.map((one) => one.node_id).toSorted();
    expect(new Set(nodesIn(answers[0])).size).toBe(20);
    expect(nodesIn(answers[0])).toEqual(nodesIn(answers[1]));
  });

  it("adopt one machine once at two sites that are one region, also if one of them does not know its BMC", async () => {
    const ids = Array.from({ length: 10 }, (_, n) => world.deployed(`both-${n}`).systemId);
    const unknown = world.deployed("both-unknown").systemId;
    await world.poll();
    await showAtTwin();
    const answers = await Promise.all([adoptAt(0, world.siteId, ids, "10.1.2."), adoptAt(1, twin, ids, "10.1.2.")]);
    expect(answers.map(counts).toSorted()).toEqual([
      [0, 0, 10],
      [10, 0, 0],
    ]);
    const refused = answers.flatMap((answer) => answer?.machines ?? []).filter(({ outcome }) => outcome === "refused");
    expect(new Set(refused.flatMap(({ refusals }) => refusals.map(({ code }) => code)))).toEqual(
      new Set(["machine_taken"]),
    );
    expect(counts(await adoptAt(0, world.siteId, [unknown], ""))).toEqual([1, 0, 0]);
    expect(counts(await adoptAt(1, twin, [unknown]))).toEqual([0, 0, 1]);
  });

  it("take a node of manual mode without a site for the host of its name, wherever the machine is", async () => {
    const machine = world.deployed("by-hand");
    await world.poll();
    await showAtTwin();
    const manual = {
      onboarding_mode: "manual",
      hostname: "by-hand",
      sku_id: world.skuId,
      region_code: "r1",
      site_id: null,
    };
    const { node_id: id } = (await world.api.ask("POST", `${ADMIN}/nodes`, manual)).body;
    for (const siteId of [world.siteId, twin]) {
      const refusals = (await adoptAt(0, siteId, [machine.systemId]))?.machines[0]?.refusals;
      expect(refusals).toMatchObject([{ code: "hostname_taken", message: expect.stringContaining(id) }]);
    }
    const ofSite = (await world.api.ask("POST", `${ADMIN}/nodes`, { ...manual, site_id: world.siteId })).body;
    expect((await adoptAt(0, world.siteId, [machine.systemId]))?.machines).toMatchObject([
      { refusals: [{ code: "hostname_taken", message: expect.stringContaining(ofSite.node_id) }] },
    ]);
  });
});
