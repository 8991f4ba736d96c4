import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SECRET_PATHS } from "../../hub/secrets/port.ts";
import { type ApiHarness, GOOD_PROBE, SITE_BODY, seedApi, startApi } from "../support/api-harness.ts";

const SITES = "/api/v1/admin/maas-sites";

describe("sites, profiles, SKUs, RoCE rows and power overrides", () => {
  let api: ApiHarness;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  it("makes a site with a default profile, and refuses its name a second time", async () => {
    const created = await api.ask("POST", SITES, { ...SITE_BODY, name: "first" });
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({
      name: "first",
      status: "active",
      deploy_user: "hpcadmin",
      credentials: { maas_token: false, power: false, deploy_password: false },
    });
    expect((await api.ask("POST", SITES, { ...SITE_BODY, name: "first" })).problem).toMatchObject({
      code: "name_taken",
      errors: [{ pointer: "/name", message: "is taken" }],
    });
    const policy = await api.ask("GET", `${SITES}/${created.body.id}/policy`);
    expect(policy.body).toMatchObject({
      id: created.body.default_profile_id,
      name: "default",
      auto_claim_single_new_machine: false,
      initialize_extra_disks: false,
    });
  });

  it("changes a site only for who has read its present version", async () => {
    const { siteId } = await seedApi(api, "versions");
    const etag = (await api.ask("GET", `${SITES}/${siteId}`)).headers.get("etag") ?? "";
    expect((await api.ask("PATCH", `${SITES}/${siteId}`, { region_code: "r2" })).problem.code).toBe(
      "precondition_required",
    );
    const changed = await api.ask("PATCH", `${SITES}/${siteId}`, { region_code: "r2" }, { "if-match": etag });
    expect(changed.body.region_code).toBe("r2");
    expect(
      (await api.ask("PATCH", `${SITES}/${siteId}`, { region_code: "r3" }, { "if-match": etag })).problem.code,
    ).toBe("precondition_failed");
    const next = changed.headers.get("etag") ?? "";
    expect(
      (await api.ask("PATCH", `${SITES}/${siteId}`, { status: "disabled" }, { "if-match": next })).body.status,
    ).toBe("disabled");
    expect((await api.ask("DELETE", `${SITES}/${siteId}`)).status).toBe(204);
  });

  it("lists page by page, each once", async () => {
    for (const name of ["page-a", "page-b", "page-c"]) await api.ask("POST", SITES, { ...SITE_BODY, name });
    const names: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const page: { body: { items: { name: string }[]; next_cursor: string | null } } = await api.ask(
        "GET",
        `${SITES}?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`,
      );
      names.push(...page.body.items.map((site) => site.name));
      cursor = page.body.next_cursor;
    }
    expect(names).toEqual([...names].sort());
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(expect.arrayContaining(["page-a", "page-b", "page-c"]));
  });

  it("tries a MAAS token before it keeps it; a refused one changes nothing", async () => {
    const { siteId } = await seedApi(api, "creds");
    api.probeAnswer = {
      ...GOOD_PROBE,
      ok: false,
      checks: [{ name: "token", status: "failed", message: "MAAS refused the token." }],
    };
    const refused = await api.ask("POST", `${SITES}/${siteId}/credentials`, { maas_token: "a:b:c" });
    expect(refused.problem).toMatchObject({ code: "site_unusable", status: 422 });
    await expect(api.secrets.read(SECRET_PATHS.maasToken(siteId))).rejects.toMatchObject({ code: "secret_missing" });
    expect((await api.ask("POST", `${SITES}/${siteId}/probe`)).problem.code).toBe("site_unusable");
    api.probeAnswer = GOOD_PROBE;
    const kept = await api.ask("POST", `${SITES}/${siteId}/credentials`, {
      maas_token: "a:b:c",
      power: { user: "root", pass: "pw" },
    });
    expect(kept.body.credentials).toEqual({ maas_token: true, power: true, deploy_password: false });
    expect(await api.secrets.read(SECRET_PATHS.maasToken(siteId))).toEqual({ token: "a:b:c" });
    expect(JSON.stringify(kept.body)).not.toContain("a:b:c");
    expect((await api.ask("POST", `${SITES}/${siteId}/probe`)).body.ok).toBe(true);
    expect((await api.ask("POST", `${SITES}/${siteId}/credentials`, {})).problem.code).toBe("validation_failed");
    expect(
      (await api.ask("POST", `${SITES}/${siteId}/credentials`, { maas_token: "only:two" })).problem.errors?.[0]
        ?.pointer,
    ).toBe("/maas_token");
  });

  it("keeps a token's life above the slowest deploy, also when only one of the two is changed", async () => {
    const { siteId, profileId } = await seedApi(api, "ttl");
    const profiles = `${SITES}/${siteId}/profiles`;
    expect(
      (await api.ask("POST", profiles, { name: "short", enrollment_token_ttl_seconds: 60 })).problem.errors?.[0]
        ?.pointer,
    ).toBe("/enrollment_token_ttl_seconds");
    const etag = (await api.ask("GET", `${profiles}/${profileId}`)).headers.get("etag") ?? "";
    expect(
      (await api.ask("PATCH", `${profiles}/${profileId}`, { deploy_timeout_seconds: 7201 }, { "if-match": etag }))
        .problem.code,
    ).toBe("validation_failed");
    const changed = await api.ask(
      "PATCH",
      `${profiles}/${profileId}`,
      { deploy_timeout_seconds: 3600, max_deploy_retry_attempts: 2 },
      { "if-match": etag },
    );
    expect(changed.body).toMatchObject({
      deploy_timeout_seconds: 3600,
      max_deploy_retry_attempts: 2,
      batch_max_parallel: 10,
    });
    expect((await api.ask("DELETE", `${profiles}/${profileId}`)).problem.code).toBe("conflict");
    const other = await api.ask("POST", profiles, { name: "gpu" });
    const siteTag = (await api.ask("GET", `${SITES}/${siteId}`)).headers.get("etag") ?? "";
    expect(
      (await api.ask("PATCH", `${SITES}/${siteId}`, { default_profile_id: other.body.id }, { "if-match": siteTag }))
        .body.default_profile_id,
    ).toBe(other.body.id);
    expect((await api.ask("DELETE", `${profiles}/${profileId}`)).status).toBe(204);
  });

  it("changes a SKU for who has read its present version, and enables it again", async () => {
    await seedApi(api, "changing");
    const sku = "/api/v1/admin/skus/sku-changing";
    expect((await api.ask("DELETE", sku)).status).toBe(204);
    const read = await api.ask("GET", sku);
    expect(read.body.status).toBe("disabled");
    expect((await api.ask("PATCH", sku, { status: "active" })).problem.code).toBe("precondition_required");
    const etag = { "if-match": read.headers.get("etag") ?? "" };
    expect((await api.ask("PATCH", sku, { id: "other" }, etag)).problem.errors?.[0]?.pointer).toBe("/id");
    const changed = await api.ask("PATCH", sku, { status: "active", gpus_total: 4 }, etag);
    expect(changed.body).toMatchObject({ status: "active", gpus_total: 4, gpu_vendor: "amd" });
    expect((await api.ask("PATCH", sku, { gpus_total: 2 }, etag)).problem.code).toBe("precondition_failed");
    expect((await api.ask("PATCH", "/api/v1/admin/skus/none", { gpus_total: 2 }, etag)).problem.code).toBe("not_found");
  });

  it("writes RoCE rows all or none, and names each row at fault", async () => {
    const { siteId } = await seedApi(api, "roce");
    const rows = `${SITES}/${siteId}/roce-assignments`;
    const row = (hostname: string, nic: string, ipv4_cidr: string) => ({ hostname, interface: nic, ipv4_cidr });
    expect(
      (
        await api.ask("POST", rows, {
          items: [row("c07u31", "enp28s0np0", "172.30.9.61/31"), row("c07u31", "enp29s0np0", "172.29.1.219/31")],
        })
      ).body.written,
    ).toBe(2);
    const bad = await api.ask("POST", rows, {
      items: [
        row("c07u32", "a", "172.30.9.61/31"),
        row("c07u33", "b", "172.30.1.1/31"),
        row("c07u33", "b", "172.30.1.3/31"),
      ],
    });
    expect(bad.problem.errors?.map((error) => error.pointer)).toEqual(["/items/2", "/items/0/ipv4_cidr"]);
    expect(
      (await api.ask("POST", rows, { items: [row("Bad_Host", "x", "300.1.1.1/31")] })).problem.errors?.map(
        (error) => error.pointer,
      ),
    ).toEqual(["/items/0/hostname", "/items/0/ipv4_cidr"]);
    const list = (await api.ask("GET", rows)).body.items;
    expect(list.map((item: { interface: string }) => item.interface)).toEqual(["enp28s0np0", "enp29s0np0"]);
    expect((await api.ask("POST", rows, { items: [row("c07u31", "enp28s0np0", "172.30.9.63/31")] })).status).toBe(200);
    expect((await api.ask("DELETE", `${rows}/${list[1].id}`)).status).toBe(204);
    expect((await api.ask("DELETE", `${rows}/${list[1].id}`)).problem.code).toBe("not_found");
  });

  it("gives one host a BMC login of its own, whose secret lies in the store alone", async () => {
    const { siteId } = await seedApi(api, "power");
    const overrides = `${SITES}/${siteId}/power-credential-overrides`;
    const body = { selector_type: "ipmi_ip", selector_value: "10.176.16.128", user: "root", pass: "hunter2hunter2" };
    const created = await api.ask("POST", overrides, body);
    expect(created.status).toBe(201);
    expect(JSON.stringify(created.body)).not.toContain("hunter2");
    expect(await api.secrets.read(SECRET_PATHS.powerOverride(siteId, created.body.id))).toEqual({
      user: "root",
      pass: "hunter2hunter2",
    });
    expect((await api.ask("POST", overrides, body)).problem.code).toBe("name_taken");
    expect(
      (await api.ask("POST", overrides, { ...body, selector_value: "not-an-address" })).problem.errors?.[0]?.pointer,
    ).toBe("/selector_value");
    expect((await api.ask("DELETE", `${overrides}/${created.body.id}`)).status).toBe(204);
    await expect(api.secrets.read(SECRET_PATHS.powerOverride(siteId, created.body.id))).rejects.toMatchObject({
      code: "secret_missing",
    });
    expect((await api.ask("GET", overrides)).body.items).toEqual([]);
  });

  it("rings a site's watcher", async () => {
    const { siteId } = await seedApi(api, "wake");
    expect((await api.ask("POST", `/internal/v1/maas-sites/${siteId}/wake`)).status).toBe(202);
    const { rows } = await api.database.database.pool.query(
      "select wake_requested_at from maas_site_watches where site_id = $1",
      [siteId],
    );
    expect(rows[0]?.wake_requested_at).not.toBeNull();
  });
});
