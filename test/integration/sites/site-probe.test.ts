import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { probeSite } from "../../../hub/startup/site-services.ts";
import { type MaasSimulator, startMaasSimulator } from "../../fakes/maas/simulator.ts";
import { newKey } from "../../fakes/maas/state/seed.ts";
import { type ApiHarness, SITE_BODY, startApi } from "../../support/api-harness.ts";

const SITES = "/api/v1/admin/maas-sites";

/** Tests the probe of a site, which checks MAAS, against a simulated region (decision M1, lifecycle 3.4, 3.5). */
describe.each(["3.5.12", "3.7.3"] as const)("the probe of a site with MAAS %s", (version) => {
  let api: ApiHarness;
  let maas: MaasSimulator;
  let site: string;
  let policy: string;
  beforeAll(async () => {
    maas = await startMaasSimulator({ machines: 1, version });
    api = await startApi({ probe: probeSite });
    const body = { ...SITE_BODY, api_base_url: maas.url, pxe_vlan_vid: 310 };
    const { id } = (await api.ask("POST", SITES, body)).body;
    site = `${SITES}/${id}`;
    policy = `${site}/policy`;
    expect((await api.ask("POST", `${site}/credentials`, { maas_token: maas.apiKey })).status).toBe(200);
  });
  afterEach(async () => {
    maas.sim.faults.clear();
    maas.sim.region.clockAheadMs = 0;
    await change({ distro_series: "ubuntu/noble", commissioning_scripts: [], testing_scripts: [], pxe_vlan_vid: null });
  });
  afterAll(async () => {
    await api?.close();
    await maas?.close();
  });

  const probe = () => api.ask("POST", `${site}/probe`);
  const change = async (fields: object) => {
    const etag = (await api.ask("GET", policy)).headers.get("etag") ?? "";
    const changed = await api.ask("PATCH", policy, fields, { "if-match": etag });
    expect(changed.status).toBe(200);
  };
  const checks = async (name: string) =>
    (await probe()).body.checks.filter((check: { name: string }) => check.name === name);

  it("warns of credentials that onboardings would miss", async () => {
    const missing = /^The site has no deploy_password, which .*; no power, which .*\. Write its credentials\.$/;
    expect(await checks("credentials")).toMatchObject([{ status: "warning", message: expect.stringMatching(missing) }]);
    const rest = { power: { user: "root", pass: "calvin" }, deploy_password: "correct horse" };
    expect((await api.ask("POST", `${site}/credentials`, rest)).status).toBe(200);
  });

  it("reports version, clock, account, racks, and passed checks", async () => {
    const { status, body } = await probe();
    expect(status).toBe(200);
    expect(body).toMatchObject({
      maas_version: version,
      username: "admin",
      is_superuser: true,
    });
    expect(Math.abs(body.clock_ahead_seconds)).toBeLessThan(30);
    expect(body.rack_controllers).toMatchObject([{ hostname: "rack1" }]);
    const told = body.checks.map(({ name, status: how, profile }: Record<string, string | null>) => [
      name,
      how,
      profile,
    ]);
    expect(told).toEqual([
      ["reachable", "ok", null],
      ["clock", "ok", null],
      ["token", "ok", null],
      ["rights", "ok", null],
      ["racks", "ok", null],
      ["pxe_network", "ok", "default"],
      ["boot_image", "ok", "default"],
      ["enable_disk_erasing_on_release", "ok", null],
      ["hardware_sync_interval", "ok", null],
      ["upstream_dns", "ok", null],
      ["sole_site", "ok", null],
      ["credentials", "ok", null],
    ]);
  });

  it("warns of a missing image, architecture, script or PXE network of the profile", async () => {
    await change({
      distro_series: "ubuntu/plucky",
      testing_scripts: ["smartctl-validate", "burn-in"],
      pxe_vlan_vid: 7,
    });
    expect(await checks("boot_image")).toMatchObject([{ status: "warning", profile: "default" }]);
    expect((await checks("scripts"))[0].message).toMatch(/^MAAS has no burn-in: onboardings with profile default/);
    expect((await checks("pxe_network"))[0].message).toMatch(/^No rack controller has an interface ens19 on VLAN 7/);
    await change({ distro_series: "noble", architecture: "arm64/generic" });
    expect((await checks("boot_image"))[0].message).toMatch(/no boot image ubuntu\/noble for arm64/);
    await change({ architecture: "amd64/generic" });
  });

  it("warns of a PXE network without DHCP, and of one on another interface of the rack", async () => {
    const vlan = maas.sim.region.state.vlans.find(({ vid }) => vid === 310);
    if (vlan === undefined) throw new Error("the region has no PXE network");
    vlan.dhcpOn = false;
    expect((await checks("pxe_network"))[0]).toMatchObject({
      status: "warning",
      message: expect.stringMatching(/^MAAS serves no DHCP on interface ens19 on VLAN 310/),
    });
    vlan.dhcpOn = true;
    await change({ pxe_iface: "ens20" });
    expect((await checks("pxe_network"))[0].message).toMatch(/^No rack controller has an interface ens20 on VLAN 310/);
    await change({ pxe_iface: null });
  });

  it("checks the needs of each active profile, and of no disabled one", async () => {
    const named = async (name: string, needs: object) =>
      (await api.ask("POST", `${site}/profiles`, { name, ...needs })).body.id as string;
    await named("bare", { require_hw_sync: false, hardware_sync_interval_seconds: 60 });
    await named("hourly", { hardware_sync_interval_seconds: 3600, distro_series: "ubuntu/plucky" });
    const old = await named("old", { hardware_sync_interval_seconds: 7200, distro_series: "ubuntu/plucky" });
    expect((await api.ask("DELETE", `${site}/profiles/${old}`)).status).toBeLessThan(300);
    expect(
      (await checks("boot_image")).map(({ profile, status }: Record<string, string>) => [profile, status]),
    ).toEqual([
      ["bare", "ok"],
      ["default", "ok"],
      ["hourly", "warning"],
    ]);
    const [sync] = await checks("hardware_sync_interval");
    expect(sync.message).toMatch(/every 900 s, and profile hourly expects 3600 s\. The hub sets/);
  });

  it("warns of settings of the region that change a release or a sync", async () => {
    const { config } = maas.sim.region.state;
    const before = { ...config };
    config["enable_disk_erasing_on_release"] = true;
    config["hardware_sync_interval"] = "1h";
    expect(await checks("enable_disk_erasing_on_release")).toMatchObject([
      { status: "warning", message: expect.stringContaining("erase_fell_back or erase_unproven") },
    ]);
    expect((await checks("hardware_sync_interval"))[0].message).toMatch(
      /every 3600 s, and profile default expects 900 s/,
    );
    Object.assign(config, before);
  });

  it("warns if the DNS of MAAS does not forward to all servers that the site names", async () => {
    const { config } = maas.sim.region.state;
    const before = config["upstream_dns"] ?? null;
    config["upstream_dns"] = null;
    expect(await checks("upstream_dns")).toMatchObject([
      { status: "warning", message: expect.stringMatching(/to no server, .* to "1\.1\.1\.1 8\.8\.8\.8"/) },
    ]);
    config["upstream_dns"] = "10.0.0.53 8.8.8.8";
    expect((await checks("upstream_dns"))[0].message).toMatch(/to 10\.0\.0\.53, 8\.8\.8\.8, but not to 1\.1\.1\.1 as/);
    const etag = (await api.ask("GET", site)).headers.get("etag") ?? "";
    const servers = { upstream_dns_servers: ["10.0.0.53"] };
    expect((await api.ask("PATCH", site, servers, { "if-match": etag })).status).toBe(200);
    expect(await checks("upstream_dns")).toMatchObject([{ status: "ok" }]);
    config["upstream_dns"] = before;
  });

  it("compares the clocks before it tries the token, and fails where MAAS would refuse", async () => {
    maas.sim.region.clockAheadMs = -120_000;
    expect((await checks("clock"))[0].message).toMatch(/is 1[123]\d s behind the hub's/);
    // MAAS accepts a request whose timestamp is later than the time of its own clock.
    maas.sim.region.clockAheadMs = -4_000_000;
    expect((await checks("clock"))[0].status).toBe("warning");
    maas.sim.region.clockAheadMs = 120_000;
    expect((await checks("clock"))[0]).toMatchObject({
      status: "warning",
      message: expect.stringMatching(/is 1[012]\d s ahead of the hub's/),
    });
    maas.sim.region.clockAheadMs = 15_000;
    expect((await checks("clock"))[0].status).toBe("ok");
    maas.sim.region.clockAheadMs = 400_000;
    const refused = (await probe()).problem;
    expect(refused).toMatchObject({ status: 422, code: "site_unusable" });
    expect(Object.keys(refused.context ?? {})).toEqual(["clock", "token"]);
    expect(refused.detail).toMatch(/ahead of the hub's, so it refuses every request as expired\. Set both by NTP\./);
  });

  it("fails for a region without a rack, and for one that does not answer", async () => {
    maas.sim.faults.add({ match: { path: "rackcontrollers/" }, kind: "status", code: 200, body: "[]", times: 1 });
    expect((await probe()).problem).toMatchObject({
      status: 422,
      context: { racks: expect.stringMatching(/No rack/) },
    });
    maas.sim.faults.add({ match: { path: "version/" }, kind: "status", code: 502, body: "<html>", times: 1 });
    expect((await probe()).problem).toMatchObject({
      status: 422,
      context: { reachable: expect.stringMatching(/502/) },
    });
  });

  it("refuses a wrong token with 422, and does not repeat the secret that MAAS answers with (decision M12)", async () => {
    const real = maas.apiKey.split(":")[2] ?? "";
    const wrong = [...maas.apiKey.split(":").slice(0, 2), "guessed-wrongly"].join(":");
    const refused = await api.ask("POST", `${site}/credentials`, { maas_token: wrong });
    expect(refused.problem).toMatchObject({ status: 422, code: "site_unusable", errors: [{ pointer: "/maas_token" }] });
    expect(refused.problem.detail).toMatch(/^Nothing was written: .*401/);
    const said = JSON.stringify(refused.body);
    expect(said).not.toContain(real);
    expect(said).not.toContain("guessed-wrongly");
    expect((await probe()).status).toBe(200);
  });

  it("refuses the token of an ordinary user, even if MAAS calls that user an administrator", async () => {
    const key = { consumer_key: newKey(18), token_key: newKey(18), token_secret: newKey(32) };
    const tokens = [{ name: "t", ...key }];
    maas.sim.region.state.users.push({ username: "bob", email: "", isSuperuser: false, tokens, sshKeys: [] });
    const maas_token = `${key.consumer_key}:${key.token_key}:${key.token_secret}`;
    const answer = () => api.ask("POST", `${site}/credentials`, { maas_token });
    expect((await answer()).problem.detail).toMatch(/bob is no administrator/);
    const body = JSON.stringify({ username: "bob", email: "", is_superuser: true });
    maas.sim.faults.add({ match: { path: "users/" }, kind: "status", code: 200, body, times: 1 });
    expect((await answer()).problem.detail).toMatch(/bob is no administrator/);
  });

  it("stops when the token lacks rights, and does not mistake a busy region for missing rights", async () => {
    const body = JSON.stringify({ username: "admin", email: "", is_superuser: false });
    maas.sim.faults.add({ match: { path: "users/" }, kind: "status", code: 200, body, times: 1 });
    maas.sim.faults.add({ match: { path: "rackcontrollers/" }, kind: "status", code: 200, body: "[]", times: 1 });
    expect(Object.keys((await probe()).problem.context ?? {})).toEqual(["rights"]);
    maas.sim.faults.clear();
    maas.sim.faults.add({ match: { op: "power_parameters" }, kind: "status", code: 503, body: "busy", times: 1 });
    expect((await probe()).problem.context).toEqual({ reachable: expect.stringMatching(/503/) });
  });
});
