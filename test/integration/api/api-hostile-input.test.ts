import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SecretError } from "../../../hub/secrets/port.ts";
import { type ApiHarness, SITE_BODY, seedApi, siteBody, startApi } from "../../support/api-harness.ts";

const SITES = "/api/v1/admin/maas-sites";
const NOBODY = "00000000-0000-4000-8000-000000000000";
const cursorOf = (text: string): string => Buffer.from(text).toString("base64url");

describe("the API with input that is valid JSON but unacceptable", () => {
  let api: ApiHarness;
  let siteId: string;
  beforeAll(async () => {
    api = await startApi();
    ({ siteId } = await seedApi(api, "hostile"));
  });
  afterAll(() => api.close());

  const refused = async (...request: Parameters<ApiHarness["ask"]>) => {
    const before = await api.counts();
    const { problem } = await api.ask(...request);
    expect(await api.counts()).toEqual(before);
    return { status: problem.status, pointers: problem.errors?.map((error) => error.pointer) };
  };

  it.each([
    ["NUL", "a\u0000b"],
    ["half a surrogate pair", "a\ud800b"],
  ])("names the field with %s, because no column stores it unchanged", async (_, text) => {
    const sku = { id: "sku-x", gpu_vendor: "amd", gpus_total: 1 };
    const login = { selector_type: "hostname", selector_value: "c1", user: "root" };
    const reason = { reason: text };
    const [profiles, overrides] = [`${SITES}/${siteId}/profiles`, `${SITES}/${siteId}/power-credential-overrides`];
    for (const [path, body, pointer] of [
      [SITES, { ...SITE_BODY, name: "x", region_code: text }, "/region_code"],
      ["/api/v1/admin/skus", { ...sku, description: text }, "/description"],
      [profiles, { name: "x", site_bootstrap_bundle_ref: text }, "/site_bootstrap_bundle_ref"],
      [`${SITES}/${siteId}/credentials`, { power: { user: "root", pass: text } }, "/power/pass"],
      [overrides, { ...login, pass: text }, "/pass"],
      [`/api/v1/admin/onboardings/${NOBODY}/cancel`, reason, "/reason"],
    ] as const)
      expect(await refused("POST", path, body)).toEqual({ status: 400, pointers: [pointer] });
  });

  it("refuses names of a first boot that a shell, YAML or a resolver might interpret", async () => {
    const { profileId, skuId } = await seedApi(api, "names");
    const selectors = { site_id: siteId, profile_id: profileId, sku_id: skuId, ipmi_ip: "10.9.9.9" };
    const credentials = `${SITES}/${siteId}/credentials`;
    for (const text of [
      "a b",
      "a;id",
      "$(id)",
      "`id`",
      "a'b",
      'a"b',
      "a\\b",
      "a: b",
      "#a",
      "*a",
      "a\nb",
      "a.b",
      "-a",
      "A",
      "~",
      "",
    ]) {
      const begun = { ...selectors, hostname: text };
      expect(await refused("POST", "/api/v1/admin/onboardings", begun)).toEqual({
        status: 400,
        pointers: ["/hostname"],
      });
      // The hub accepts only IP addresses as DNS servers, so that no other text gets into the configuration of a host's resolver.
      for (const [field, value] of [
        ["deploy_user", text],
        ["upstream_dns_servers", [text]],
        ["node_pxe_iface", text === "a.b" || text === "A" ? "a/b" : text],
      ] as const) {
        const { status, pointers } = await refused("POST", SITES, { ...SITE_BODY, name: "x", [field]: value });
        expect({ status, pointer: pointers?.[0] }).toMatchObject({
          status: 400,
          pointer: expect.stringMatching(`^/${field}`),
        });
      }
    }
    for (const deploy_password of ["seven77", "line\nbreak1", "escape\u001b[2J", "\u{1f600}".repeat(128)])
      expect(await refused("POST", credentials, { deploy_password })).toEqual({
        status: 400,
        pointers: ["/deploy_password"],
      });
    const longest = `${"\u{1f600}".repeat(127)}abc`;
    expect((await api.ask("POST", credentials, { deploy_password: longest })).status).toBe(200);
  });

  it("refuses cursors that would fail in the database", async () => {
    const onboardings = "/api/v1/admin/onboardings";
    for (const [path, text] of [
      [SITES, '["a\\u0000"]'],
      ["/api/v1/admin/nodes", `["a\\u0000","${NOBODY}"]`],
      ["/api/v1/admin/events", '["abc"]'],
      ["/api/v1/admin/events", '["99999999999999999999"]'],
      ...[
        onboardings,
        "/api/v1/admin/decommissions",
        "/api/v1/admin/onboarding-batches",
        "/api/v1/admin/decommission-batches",
      ].flatMap(
        (list) =>
          [
            [list, `["2026-99-99 00:00:00+00","${NOBODY}"]`],
            [list, `["2026-02-30 00:00:00.000001+00","${NOBODY}"]`],
            [list, `["2026-01-01 00:00:00+00","${"-".repeat(36)}"]`],
            [list, `2026-01-01 00:00:00+00|${NOBODY}`],
            [list, "nonsense"],
          ] as const,
      ),
    ] as const)
      expect(await refused("GET", `${path}?cursor=${cursorOf(text)}`)).toEqual({ status: 400, pointers: ["/cursor"] });
  });

  it("refuses input that is too deep, has __proto__, or has a name that a pointer must escape", async () => {
    const nested = `${"[".repeat(500_000)}${"]".repeat(500_000)}`;
    expect(await refused("POST", SITES, nested)).toEqual({ status: 400, pointers: [""] });
    const site = JSON.stringify({ ...SITE_BODY, name: "x" }).slice(1);
    expect(await refused("POST", SITES, `{"__proto__":{"status":"disabled"},${site}`)).toEqual({
      status: 400,
      pointers: ["/__proto__"],
    });
    expect((await refused("POST", SITES, `{"a/b~c":1,${site}`)).pointers).toEqual(["/a~1b~0c"]);
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x${index}`, 1]));
    expect((await refused("POST", SITES, { ...SITE_BODY, name: "x", ...many })).pointers).toHaveLength(50);
  });

  it("refuses a repeated parameter and paths that are no text", async () => {
    expect(await refused("GET", `${SITES}?limit=1&limit=2`)).toEqual({ status: 400, pointers: ["/limit"] });
    for (const id of ["%00", "%zz"])
      expect(await refused("GET", `${SITES}/${id}`)).toEqual({ status: 400, pointers: ["/id"] });
  });

  it("refuses a login inside a site's address, because the address is no secret", async () => {
    for (const api_base_url of ["http://ann:hunter2@maas.example/MAAS", "https://ann@maas.example"])
      expect(await refused("POST", SITES, { ...SITE_BODY, name: "x", api_base_url })).toEqual({
        status: 400,
        pointers: ["/api_base_url"],
      });
  });

  it("accepts JSON only by its exact type, and a token with any case of the scheme", async () => {
    const patch = JSON.stringify(siteBody("typed"));
    expect((await refused("POST", SITES, patch, { "content-type": "application/json-patch+json" })).status).toBe(415);
    expect((await refused("POST", SITES, patch, { "content-type": "application/jsonp" })).status).toBe(415);
    expect((await api.ask("POST", SITES, patch, { "content-type": "application/json; charset=utf-8" })).status).toBe(
      201,
    );
    const shown = await api.ask("GET", SITES, undefined, { authorization: `bearer  ${api.admin}` });
    expect(shown.status).toBe(200);
    expect(shown.headers.get("cache-control")).toBe("no-store");
  });

  it("leaves no secret behind for an override that was not created, even with two requests under one key", async () => {
    const overrides = `${SITES}/${siteId}/power-credential-overrides`;
    const body = { selector_type: "hostname", selector_value: "c2", user: "root", pass: "pw" };
    const written: string[] = [];
    const { write } = api.secrets;
    api.secrets.write = async (path, data) => {
      written.push(path);
      await write(path, data);
    };
    try {
      const answers = await Promise.all(
        [1, 2, 3].map(() => api.ask("POST", overrides, body, { "idempotency-key": "one-override" })),
      );
      expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1);
      expect((await api.ask("POST", overrides, body)).problem.code).toBe("name_taken");
      const kept: string[] = [];
      for (const path of written)
        await api.secrets.read(path).then(
          () => kept.push(path),
          (error: unknown) => expect(error).toBeInstanceOf(SecretError),
        );
      expect(kept).toHaveLength(1);
      expect(kept[0]).toContain(answers[0]?.body.id);
    } finally {
      api.secrets.write = write;
    }
  });
});
