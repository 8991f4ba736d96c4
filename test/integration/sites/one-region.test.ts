import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createMaasClient } from "../../../hub/maas/client.ts";
import { SiteClients } from "../../../hub/maas/site-clients.ts";
import { SECRET_PATHS } from "../../../hub/secrets/port.ts";
import { probeSite, siteClient } from "../../../hub/startup/site-services.ts";
import { startWatcher } from "../../../hub/watcher/watcher.ts";
import { startOnboarding } from "../../../hub/workflows/onboarding/start-onboarding.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import { OnboardingCreate } from "../../../shared/api/onboardings.ts";
import { SiteId, type WorkflowId } from "../../../shared/ids.ts";
import { Secret } from "../../../shared/secret.ts";
import { type MaasSimulator, startMaasSimulator } from "../../fakes/maas/simulator.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../../fakes/maas/state/site.ts";
import { Driver } from "../../properties/drive.ts";
import { type ApiHarness, GOOD_PROBE, SITE_BODY, siteBody, startApi } from "../../support/api-harness.ts";
import { bindNode } from "../../support/bound-node.ts";
import { quietLog } from "../../support/log.ts";
import { type OnboardingRig, SKU, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { until } from "../../support/until.ts";

const SITES = "/api/v1/admin/maas-sites";

/** A MAAS region may belong to only one site (lifecycle 3.1). */
describe("the address of a region", () => {
  let api: ApiHarness;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  const sql = (text: string, values: unknown[]) => api.database.database.pool.query(text, values);
  const create = (name: string, api_base_url: string) => api.ask("POST", SITES, { ...SITE_BODY, name, api_base_url });
  const patch = async (id: string, body: unknown) => {
    const etag = (await api.ask("GET", `${SITES}/${id}`)).headers.get("etag") ?? "";
    return api.ask("PATCH", `${SITES}/${id}`, body, { "if-match": etag });
  };

  it("belongs to one site, however it is spelt", async () => {
    const first = await create("first", "http://a.example:5240/MAAS");
    const before = await api.counts();
    for (const spelt of [
      "http://A.example:5240/MAAS/",
      "http://a.example:5240",
      "http://a.example:5240/MAAS/api/2.0/",
    ]) {
      const { problem } = await create("second", spelt);
      expect(problem).toMatchObject({
        status: 409,
        code: "conflict",
        errors: [{ pointer: "/api_base_url", message: "is the region of site first" }],
        context: { site_id: first.body.id },
      });
      expect(problem.detail).toMatch(/^This MAAS region already is site first, at .*Use profiles of one site/);
    }
    expect(await api.counts()).toEqual(before);
    const second = await create("second", "http://b.example:5240/MAAS");
    const taken = await patch(second.body.id, { api_base_url: "http://a.example:5240/MAAS/" });
    expect(taken.problem).toMatchObject({ status: 409, errors: [{ pointer: "/api_base_url" }] });
    expect((await patch(second.body.id, { api_base_url: "http://b.example:5240/MAAS/" })).status).toBe(200);
  });

  it("names another region if the port, scheme or path differs", async () => {
    const others = [
      "http://host.example:5240/MAAS",
      "http://host.example:5241/MAAS",
      "https://host.example:5240/MAAS",
      "http://host.example/MAAS",
      "https://host.example/MAAS",
      "http://host.example:5240/dc2/MAAS",
    ];
    for (const [n, address] of others.entries()) expect((await create(`other-${n}`, address)).status).toBe(201);
  });

  it("goes to one of several sites that request it at once", async () => {
    const address = "http://race.example:5240/MAAS";
    const created = await Promise.all(["race-1", "race-2", "race-3"].map((name) => create(name, `${address}/`)));
    expect(created.map(({ status }) => status).sort()).toEqual([201, 409, 409]);

    const taken = "http://taken.example:5240/MAAS";
    const movers = await Promise.all(["mover-1", "mover-2"].map((name) => create(name, `http://${name}.example/MAAS`)));
    const [to, sleeper] = await Promise.all([
      create("anew", "http://anew.example:5240/MAAS"),
      create("sleeper", "http://sleeper.example:5240/MAAS"),
    ]);
    expect((await patch(sleeper.body.id, { status: "disabled" })).status).toBe(200);
    await sql("update maas_sites set api_base_url = $1 where id = $2", [taken, sleeper.body.id]);
    const answers = await Promise.all([
      ...[...movers, to].map(({ body }) => patch(body.id, { api_base_url: taken })),
      patch(sleeper.body.id, { status: "active" }),
      create("late", taken),
    ]);
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status !== 409)).toHaveLength(1);
  });

  it("is free once its site is disabled without nodes or work, and the old site cannot take it back", async () => {
    const address = "http://left.example:5240/MAAS";
    const old = (await create("left", address)).body.id;
    const node = await bindNode(api.database, old, { hostname: "c1", status: "active" });
    expect((await patch(old, { status: "disabled" })).status).toBe(200);
    expect((await create("heir", address)).problem.detail).toMatch(
      /is site left, which is disabled and still has nodes/,
    );
    await sql("update nodes set status = 'deleted' where id = $1", [node]);
    expect((await create("heir", address)).status).toBe(201);
    const again = await patch(old, { status: "active" });
    expect(again.problem).toMatchObject({ status: 409, errors: [{ pointer: "/status" }] });
  });

  it("that two older sites share is reported by their probes, and can be changed", async () => {
    const one = (await api.ask("POST", SITES, siteBody("old-one"))).body;
    const two = (await api.ask("POST", SITES, siteBody("old-two"))).body;
    await api.ask("POST", `${SITES}/${one.id}/credentials`, { maas_token: "a:b:c" });
    await sql("update maas_sites set api_base_url = $1 where id = $2", [one.api_base_url, two.id]);
    api.probeAnswer = GOOD_PROBE;
    const { problem } = await api.ask("POST", `${SITES}/${one.id}/probe`);
    expect(problem).toMatchObject({ status: 422, code: "site_unusable" });
    expect(problem.context?.["sole_site"]).toMatch(/^This MAAS region is also site old-two: .* Keep one of them/);
    expect((await patch(one.id, { region_code: "r9" })).status).toBe(200);
    expect((await api.ask("POST", `${SITES}/${one.id}/credentials`, { maas_token: "d:e:f" })).status).toBe(200);
    expect((await patch(two.id, { status: "disabled" })).status).toBe(200);
    expect((await api.ask("POST", `${SITES}/${one.id}/probe`)).status).toBe(200);
  });
});

/** Two MAAS addresses may lead to one region, which the hub can tell from the events at both addresses. */
describe("a region with two addresses", () => {
  let api: ApiHarness;
  let maas: MaasSimulator;
  let first: SiteId;
  beforeAll(async () => {
    maas = await startMaasSimulator({ machines: 1 });
    api = await startApi({ probe: probeSite });
    await something(maas);
    first = await make("by-address", maas.url);
    expect((await writeToken(first)).status).toBe(200);
    await lookAt(first, maas);
  });
  afterAll(async () => {
    await api?.close();
    await maas?.close();
  });

  const make = async (name: string, api_base_url: string) =>
    SiteId.parse((await api.ask("POST", SITES, { ...SITE_BODY, name, api_base_url })).body.id);
  const writeToken = (id: SiteId) => api.ask("POST", `${SITES}/${id}/credentials`, { maas_token: maas.apiKey });
  const byName = (url: string) => url.replace("127.0.0.1", "localhost");
  /** Creates the machine in MAAS if it does not exist, and adds an event about the machine. */
  async function something({ sim }: MaasSimulator): Promise<void> {
    const { region } = sim;
    if (region.state.machines.length === 0) {
      const client = createMaasClient({ baseUrl: maas.url, apiKey: new Secret(maas.apiKey) });
      const power = { address: bmcAddress(1), user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) };
      await client.createMachine({ hostname: "host-1", architecture: "amd64/generic", power });
    }
    const [machine] = region.state.machines;
    if (machine !== undefined) region.event(machine, "DEBUG", "Node changed", "by somebody");
  }
  /** Runs a watcher of the site until the site's event cursor is at the newest event of the MAAS region. */
  async function lookAt(id: SiteId, { sim }: MaasSimulator): Promise<void> {
    const { db, inTx, pool } = api.database.database;
    const clientFor = siteClient(db, api.secrets, new SiteClients());
    const rest = { hubId: randomUUID(), log: quietLog, pollIntervalMs: 30, sweepIntervalMs: 3_600_000 };
    const newest = Math.max(...sim.region.state.events.map((event) => event.id));
    const watcher = startWatcher({ db, inTx, clientFor, ...rest });
    try {
      await until("the region's events to be known", async () => {
        const { rows } = await pool.query("select event_cursor from maas_site_watches where site_id = $1", [id]);
        return Number(rows[0]?.event_cursor) === newest ? true : undefined;
      });
    } finally {
      await watcher.close();
    }
  }
  async function copyOf({ sim }: MaasSimulator): Promise<MaasSimulator> {
    const copy = await startMaasSimulator({ machines: 1 });
    Object.assign(copy.sim.region.state, JSON.parse(JSON.stringify(sim.region.state)));
    return copy;
  }

  it("is refused as a second site, and the probe reports a second site that already has its token", async () => {
    const second = await make("by-name", byName(maas.url));
    const refused = await writeToken(second);
    expect(refused.problem).toMatchObject({
      status: 409,
      errors: [{ pointer: "/maas_token", message: "is the region of site by-address" }],
      context: { site_id: first },
    });
    expect((await api.ask("GET", `${SITES}/${second}`)).body.credentials.maas_token).toBe(false);
    await expect(api.secrets.read(SECRET_PATHS.maasToken(second))).rejects.toMatchObject({ code: "secret_missing" });

    const path = SECRET_PATHS.maasToken(second);
    await api.secrets.write(path, { token: maas.apiKey });
    const { pool } = api.database.database;
    await pool.query("update maas_sites set api_token_vault_path = $1 where id = $2", [path, second]);
    const probe = (await api.ask("POST", `${SITES}/${second}/probe`)).problem;
    expect(probe.context?.["sole_site"]).toMatch(/^This MAAS region is also site by-address/);
    expect((await writeToken(second)).status, "a token that is revoked must be replaced").toBe(200);

    const move = { api_base_url: `${byName(maas.url)}/`, maas_token: maas.apiKey, reason: "a name" };
    const moved = await api.ask("POST", `${SITES}/${first}/move`, move);
    expect(moved.problem).toMatchObject({
      status: 409,
      errors: [{ pointer: "/api_base_url", message: "is the region of site by-name" }],
    });
    expect((await api.ask("DELETE", `${SITES}/${second}`)).status).toBe(204);
    expect((await api.ask("POST", `${SITES}/${first}/probe`)).status).toBe(200);
    expect((await api.ask("POST", `${SITES}/${first}/move`, move)).status).toBe(200);
  });

  it("is not confused with a region of the same ids, nor with a copy that lacks its last event", async () => {
    const copy = await copyOf(maas);
    const other = await copyOf(maas);
    try {
      for (const event of other.sim.region.state.events) event.created += 3_600_000;
      expect((await writeToken(await make("same-ids", other.url))).status).toBe(200);

      const second = await make("copied", copy.url);
      const refused = (await writeToken(second)).problem;
      expect(refused).toMatchObject({ status: 409, errors: [{ pointer: "/maas_token" }] });
      expect(refused.detail).toMatch(/If this region is a copy, .* after a new event in the region of site by-address/);
      await something(maas);
      await lookAt(first, maas);
      expect((await writeToken(second)).status).toBe(200);
      expect((await api.ask("POST", `${SITES}/${second}/probe`)).status).toBe(200);
    } finally {
      await copy.close();
      await other.close();
    }
  });
});

/** A machine belongs to at most one host, even if two sites see it. */
describe("a machine that two sites see", () => {
  let rig: OnboardingRig;
  let driver: Driver;
  let twin: SiteId;
  beforeEach(async () => {
    rig = await startOnboardingRig({ machines: 2 });
    driver = new Driver(rig.test, workflowsOf(rig.services), (id) => rig.playAgent(id));
    const { rows } = await rig.test.database.pool.query(
      `insert into maas_sites (name, region_code, api_base_url, api_token_vault_path, default_power_creds_vault_path,
         deploy_password_vault_path, pxe_iface, pxe_vlan_vid, node_pxe_iface, deploy_user, deploy_ssh_iface, upstream_dns_servers)
       select 'twin', region_code, replace(api_base_url, '127.0.0.1', 'localhost'), api_token_vault_path,
         default_power_creds_vault_path, deploy_password_vault_path, pxe_iface, pxe_vlan_vid, node_pxe_iface, deploy_user,
         deploy_ssh_iface, upstream_dns_servers from maas_sites returning id`,
    );
    twin = SiteId.parse(rows[0].id);
  });
  afterEach(() => rig?.close());

  const begin = async (siteId: SiteId, hostname: string, ipmi_ip: string): Promise<WorkflowId> => {
    const { pool, inTx } = rig.test.database;
    const copied = await pool.query<{ id: string }>("select id from maas_site_profiles where site_id = $1", [siteId]);
    const profile_id = copied.rows[0]?.id ?? (await profileOf(siteId));
    const body = { site_id: siteId, profile_id, sku_id: SKU, hostname, ipmi_ip };
    const request = OnboardingCreate.parse(body);
    return (await inTx((tx) => startOnboarding(tx, { request, requestedBy: "ann" }))).onboarding_id;
  };
  const profileOf = async (siteId: SiteId): Promise<string> => {
    const id = await rig.addProfile("of-twin", {});
    await rig.test.database.pool.query("update maas_site_profiles set site_id = $1 where id = $2", [siteId, id]);
    return id;
  };

  /** Runs one stage of the onboarding after another, until the onboarding has its machine. */
  async function take(id: WorkflowId): Promise<void> {
    await until("the onboarding to have its machine", async () => {
      await driver.step(id);
      const { rows } = await rig.test.database.pool.query(
        "select maas_system_id from node_onboardings where onboarding_id = $1",
        [id],
      );
      return rows[0]?.maas_system_id ?? undefined;
    });
  }
  const CONFLICT = { failureClass: "state_ambiguity", failureCode: "conflicting_candidates" } as const;

  it("is not claimed by a second onboarding while the first holds it, nor after it became a node", async () => {
    const first = await begin(rig.siteId, "host-1", bmcAddress(1));
    await take(first);
    for (const [hostname, bmc, says] of [
      [
        "other-name",
        bmcAddress(1),
        `belongs to onboarding ${first} of another site. Site twin and the other site both have this machine`,
      ],
      // The BMC in the onboarding request is not the machine's BMC, so the hub does not check which onboarding holds the machine.
      ["host-1", bmcAddress(9), `(hostname, BMC ${bmcAddress(1)})`],
    ] as const) {
      const held = await driver.drive(await begin(twin, hostname, bmc));
      expect(held).toMatchObject(CONFLICT);
      expect(held.failureMessage).toContain(says);
      await driver.verb(held.id, "cancel");
      await driver.drive(held.id);
    }
    expect((await driver.drive(first)).status, await driver.story(first)).toBe("completed");
    const third = await driver.drive(await begin(twin, "third-name", bmcAddress(1)));
    expect(third).toMatchObject(CONFLICT);
    // The failure is shown to people of the site twin, who must not learn the names of the other site.
    expect(third.failureMessage).toMatch(
      /of another site is node [0-9a-f-]{36} already, .* Site twin and the other site both have this machine/,
    );
    expect(third.failureMessage).not.toMatch(/host-1|dc1/);
    expect(third.evidence).toMatchObject({ node_id: expect.any(String) });
    const another = await begin(twin, "host-2", bmcAddress(2));
    expect((await driver.drive(another)).status, await driver.story(another)).toBe("completed");
  });
});
