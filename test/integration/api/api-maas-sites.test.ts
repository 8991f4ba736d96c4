import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SECRET_PATHS } from "../../../hub/secrets/port.ts";
import { type ApiHarness, GOOD_PROBE, seedApi, siteBody, startApi } from "../../support/api-harness.ts";
import { until } from "../../support/until.ts";

const SITES = "/api/v1/admin/maas-sites";

describe("the API of sites, profiles, SKUs, RoCE rows and power overrides", () => {
  let api: ApiHarness;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  it("creates a site with a default profile, and refuses the same name again", async () => {
    const created = await api.ask("POST", SITES, siteBody("first"));
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({
      name: "first",
      status: "active",
      deploy_user: "hpcadmin",
      credentials: { maas_token: false, power: false, deploy_password: false },
    });
    expect((await api.ask("POST", SITES, siteBody("first"))).problem).toMatchObject({
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

  it("changes a site only with its current version", async () => {
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

  it("lists sites page by page, each once", async () => {
    for (const name of ["page-a", "page-b", "page-c"]) await api.ask("POST", SITES, siteBody(name));
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

  it("tries a MAAS token before it stores it, and a refused token changes nothing", async () => {
    const { siteId } = await seedApi(api, "creds");
    api.probeAnswer = {
      ...GOOD_PROBE,
      checks: [{ name: "token", status: "failed", profile: null, message: "MAAS refused the token." }],
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
    const credentials = { name: "credentials", status: "warning", profile: null, message: expect.any(String) };
    const sole = {
      name: "sole_site",
      status: "ok",
      profile: null,
      message: "No other site is known to be of this region.",
    };
    const usable = { ...GOOD_PROBE, checks: [...GOOD_PROBE.checks, sole, credentials] };
    expect((await api.ask("POST", `${SITES}/${siteId}/probe`)).body).toEqual(usable);
    expect((await api.ask("POST", `${SITES}/${siteId}/credentials`, {})).problem.code).toBe("validation_failed");
    expect(
      (await api.ask("POST", `${SITES}/${siteId}/credentials`, { maas_token: "only:two" })).problem.errors?.[0]
        ?.pointer,
    ).toBe("/maas_token");
  });

  it("keeps a token's life longer than the slowest deploy, even if only one of the two changes", async () => {
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

  it("changes a SKU only with its current version, and enables it again", async () => {
    await seedApi(api, "changing");
    const sku = "/api/v1/admin/skus/sku-changing";
    expect((await api.ask("DELETE", sku)).status).toBe(204);
    const read = await api.ask("GET", sku);
    expect(read.body.status).toBe("disabled");
    expect((await api.ask("PATCH", sku, { status: "active" })).problem.code).toBe("precondition_required");
    const etag = { "if-match": read.headers.get("etag") ?? "" };
    expect((await api.ask("PATCH", sku, { id: "other" }, etag)).problem.errors?.[0]?.pointer).toBe("/id");
    expect(read.body.hardware).toEqual({});
    const hardware = { memory_gib: 2048, disks: [{ count: 8, min_gb: 3840 }], nics: [{ count: 8, min_gbps: 400 }] };
    const changed = await api.ask("PATCH", sku, { status: "active", gpus_total: 4, hardware }, etag);
    expect(changed.body).toMatchObject({ status: "active", gpus_total: 4, gpu_vendor: "amd", hardware });
    expect((await api.ask("PATCH", sku, { gpus_total: 2 }, etag)).problem.code).toBe("precondition_failed");
    expect((await api.ask("PATCH", "/api/v1/admin/skus/none", { gpus_total: 2 }, etag)).problem.code).toBe("not_found");
  });

  it("writes every valid RoCE row and reports the outcome of each row", async () => {
    const { siteId } = await seedApi(api, "roce");
    const rows = `${SITES}/${siteId}/roce-assignments`;
    const row = (hostname: string, nic: string, ipv4_cidr: string) => ({ hostname, interface: nic, ipv4_cidr });
    const first = await api.ask("POST", rows, {
      items: [row("c07u31", "enp28s0np0", "172.30.9.61/31"), row("c07u31", "enp29s0np0", "172.29.1.219/31")],
    });
    expect(first.body).toEqual({
      written: 2,
      failed: 0,
      items: [
        { index: 0, outcome: "created" },
        { index: 1, outcome: "created" },
      ],
    });
    const mixed = await api.ask("POST", rows, {
      items: [
        row("c07u32", "a", "172.30.9.61/31"),
        row("c07u33", "b", "172.30.1.1/31"),
        row("c07u33", "b", "172.30.1.3/31"),
        row("Bad_Host", "x", "300.1.1.1/31"),
        "no row",
        { ...row("c07u34", "c", "172.30.1.5/31"), colour: "red\u0000" },
        row("c07u31", "enp29s0np0", "172.29.1.219/31"),
        row("c07u31", "enp28s0np0", "172.30.9.63/31"),
      ],
    });
    expect(mixed.body).toMatchObject({ written: 3, failed: 4 });
    expect(mixed.body.items.map((item: { outcome: string }) => item.outcome)).toEqual([
      "created",
      "created",
      "failed",
      "failed",
      "failed",
      "failed",
      "unchanged",
      "updated",
    ]);
    expect(mixed.body.items[2].message).toBe("is for the same host and interface as items[1]");
    expect(mixed.body.items[3].message).toMatch(/^hostname must be a DNS label.*; ipv4_cidr /);
    expect(mixed.body.items[5].message).toBe("has a field that a row has not: colour");
    const taken = await api.ask("POST", rows, { items: [row("c07u35", "d", "172.30.1.1/30")] });
    expect(taken.body.items).toEqual([
      { index: 0, outcome: "failed", message: "ipv4_cidr 172.30.1.1/30 belongs to c07u33 b already" },
    ]);
    const before = (await api.ask("GET", rows)).body.items;
    const swapped = await api.ask("POST", rows, {
      items: [row("c07u31", "enp28s0np0", "172.29.1.219/31"), row("c07u31", "enp29s0np0", "172.30.9.63/31")],
    });
    expect(swapped.body).toMatchObject({ written: 2, failed: 0 });
    const after = (await api.ask("GET", rows)).body.items;
    const known = (list: Record<string, unknown>[]) =>
      list.map(({ id, created_at, interface: nic }) => [id, created_at, nic]);
    expect(known(after)).toEqual(known(before));
    expect((await api.ask("DELETE", `${rows}/${after[1].id}`)).status).toBe(204);
    expect((await api.ask("DELETE", `${rows}/${after[1].id}`)).problem.code).toBe("not_found");
  });

  it("writes thousands of RoCE rows from two clients at once in a few statements", async () => {
    const { siteId } = await seedApi(api, "fleet");
    const rows = `${SITES}/${siteId}/roce-assignments`;
    const items = Array.from({ length: 4000 }, (_, n) => ({
      hostname: `host-${Math.floor(n / 8)}`,
      interface: `rail${n % 8}`,
      ipv4_cidr: `172.30.${Math.floor(n / 128)}.${(n % 128) * 2 + 1}/31`,
    }));
    // On a busy machine the first request may write for longer than the second one waits for it; then the second client is told to try again.
    const write = (of: readonly object[]) =>
      until("the rows to be written", async () => {
        const answer = await api.ask("POST", rows, { items: of });
        return answer.status === 503 ? undefined : answer;
      });
    const both = await Promise.all([write(items), write(items.toReversed())]);
    expect(both.map(({ body }) => [body.written, body.failed]).toSorted()).toEqual([
      [0, 0],
      [4000, 0],
    ]);
    const { rows: kept } = await api.database.database.pool.query(
      "select count(*)::int as n from maas_roce_assignments where site_id = $1",
      [siteId],
    );
    expect(kept[0]?.n).toBe(4000);
  });

  it("gives one host its own BMC login, whose secret is only in the secret store", async () => {
    const { siteId } = await seedApi(api, "power");
    const overrides = `${SITES}/${siteId}/power-credential-overrides`;
    const body = { selector_type: "ipmi_ip", selector_value: "10.176.16.128", user: "root", pass: "hunter2hunter2" };
    const created = await api.ask("POST", overrides, body);
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({ status: "active", last_used_at: null, warning: null });
    expect(JSON.stringify(created.body)).not.toContain("hunter2");
    expect(await api.secrets.read(SECRET_PATHS.powerOverride(siteId, created.body.id))).toEqual({
      user: "root",
      pass: "hunter2hunter2",
    });
    expect((await api.ask("POST", overrides, body)).problem.code).toBe("name_taken");
    expect(
      (await api.ask("POST", overrides, { ...body, selector_value: "not-an-address" })).problem.errors?.[0]?.pointer,
    ).toBe("/selector_value");
  });

  it("rotates, disables and enables an override only with its current version, and keeps its row after a delete", async () => {
    const { siteId } = await seedApi(api, "rotating");
    const overrides = `${SITES}/${siteId}/power-credential-overrides`;
    const { id } = (
      await api.ask("POST", overrides, { selector_type: "hostname", selector_value: "c07u31", user: "a", pass: "one" })
    ).body;
    const place = SECRET_PATHS.powerOverride(siteId, id);
    const one = `${overrides}/${id}`;
    const etag = async () => ({ "if-match": (await api.ask("GET", one)).headers.get("etag") ?? "" });
    const old = await etag();
    expect((await api.ask("PATCH", one, { user: "b", pass: "two" })).problem.code).toBe("precondition_required");
    expect((await api.ask("PATCH", one, { user: "b" }, old)).problem.errors?.[0]?.pointer).toBe("/user");
    const rotated = await api.ask("PATCH", one, { user: "b", pass: "two", status: "disabled" }, old);
    expect(rotated.body).toMatchObject({ id, status: "disabled" });
    expect(await api.secrets.read(place)).toEqual({ user: "b", pass: "two" });
    expect((await api.ask("PATCH", one, { user: "c", pass: "three" }, old)).problem.code).toBe("precondition_failed");
    expect(await api.secrets.read(place)).toEqual({ user: "b", pass: "two" });
    const next = { "if-match": rotated.headers.get("etag") ?? "" };
    expect((await api.ask("PATCH", one, { status: "active" }, next)).body.status).toBe("active");
    expect((await api.ask("DELETE", one)).status).toBe(204);
    expect((await api.ask("DELETE", one)).status).toBe(204);
    await expect(api.secrets.read(place)).rejects.toMatchObject({ code: "secret_missing" });
    expect((await api.ask("GET", overrides)).body.items).toMatchObject([{ id, status: "disabled" }]);
    expect((await api.ask("PATCH", one, { status: "active" }, await etag())).problem.errors?.[0]?.pointer).toBe(
      "/user",
    );
    const again = await api.ask("PATCH", one, { status: "active", user: "d", pass: "four" }, await etag());
    expect(again.body.status).toBe("active");
    const both = await Promise.all(
      [1, 2].map(async () =>
        api.ask("PATCH", one, { status: "disabled" }, { "if-match": again.headers.get("etag") ?? "" }),
      ),
    );
    expect(both.map((answer) => answer.status).toSorted()).toEqual([200, 412]);
  });

  it("writes no login while a decommission removes it, and writes it once the decommission is over", async () => {
    const { siteId } = await seedApi(api, "removing");
    const overrides = `${SITES}/${siteId}/power-credential-overrides`;
    const login = { selector_type: "hostname", selector_value: "c07u31", user: "a", pass: "one" };
    const { id } = (await api.ask("POST", overrides, login)).body;
    const { pool } = api.database.database;
    const operation = randomUUID();
    await pool.query(
      "insert into workflows (id, kind, status, stage, input) values ($1, 'full_decommission', 'running', 'cleanup_secrets', '{}')",
      [operation],
    );
    const secrets = JSON.stringify([{ kind: "bmc_login", outcome: "removing", login: { id } }]);
    await pool.query(
      `insert into node_decommissions (decommission_id, node_id, hostname, mode, reason, prior_status, secrets)
       values ($1, $1, 'c07u31', 'full_decommission', 'r', 'active', $2)`,
      [operation, secrets],
    );
    const one = `${overrides}/${id}`;
    const write = async () => {
      const headers = { "if-match": (await api.ask("GET", one)).headers.get("etag") ?? "" };
      return api.ask("PATCH", one, { user: "b", pass: "two" }, headers);
    };
    const refused = await write();
    expect(refused.problem).toMatchObject({ status: 409, code: "operation_exists" });
    expect(refused.problem.detail).toContain(operation);
    expect(await api.secrets.read(SECRET_PATHS.powerOverride(siteId, id))).toMatchObject({ user: "a" });
    await pool.query("update workflows set status = 'cancelled' where id = $1", [operation]);
    expect(await write()).toMatchObject({ status: 200 });
    expect(await api.secrets.read(SECRET_PATHS.powerOverride(siteId, id))).toMatchObject({ user: "b" });
  });

  it("shows a failing login at its site and in its list until the login is written anew", async () => {
    const { siteId } = await seedApi(api, "failing");
    const overrides = `${SITES}/${siteId}/power-credential-overrides`;
    const login = { selector_type: "hostname", selector_value: "c07u31", user: "a", pass: "one" };
    const { id } = (await api.ask("POST", overrides, login)).body;
    const warnings = async () => (await api.ask("GET", `${SITES}/${siteId}/credential-warnings`)).body.items;
    expect(await warnings()).toEqual([]);
    await api.database.database.pool.query(
      `insert into maas_credential_uses (path, site_id, last_used_at, last_failed_at, last_failure_code, last_failure_message)
       values ($1, $2, now(), now(), 'power_action_failed', 'The BMC refused.')`,
      [SECRET_PATHS.powerOverride(siteId, id), siteId],
    );
    expect(await warnings()).toMatchObject([{ credential: "power_override", override_id: id, reason: "failing" }]);
    const [shown] = (await api.ask("GET", overrides)).body.items;
    expect(shown).toMatchObject({ last_failure_code: "power_action_failed", warning: { reason: "failing" } });
    const etag = (await api.ask("GET", `${overrides}/${id}`)).headers.get("etag") ?? "";
    const mended = await api.ask("PATCH", `${overrides}/${id}`, { user: "a", pass: "two" }, { "if-match": etag });
    expect(mended.body).toMatchObject({ last_failed_at: null, warning: null });
    expect(await warnings()).toEqual([]);
  });

  it("wakes a site's watcher", async () => {
    const { siteId } = await seedApi(api, "wake");
    expect((await api.ask("POST", `/internal/v1/maas-sites/${siteId}/wake`)).status).toBe(202);
    const { rows } = await api.database.database.pool.query(
      "select wake_requested_at from maas_site_watches where site_id = $1",
      [siteId],
    );
    expect(rows[0]?.wake_requested_at).not.toBeNull();
  });
});
