import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";

const SITES = "/api/v1/admin/maas-sites";

/** Onboarding requests without a profile use the site's default profile, so the default profile must always be usable (lifecycle 3.7). */
describe("a site's default profile", () => {
  let api: ApiHarness;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  const etagOf = async (path: string) => ({
    "if-match": (await api.ask("GET", path)).headers.get("etag") ?? "",
  });
  const patch = async (path: string, body: unknown) => api.ask("PATCH", path, body, await etagOf(path));

  it("cannot be disabled by any route", async () => {
    const { siteId, profileId } = await seedApi(api, "kept");
    const profile = `${SITES}/${siteId}/profiles/${profileId}`;
    const policy = `${SITES}/${siteId}/policy`;
    for (const refused of [
      await api.ask("DELETE", profile),
      await patch(profile, { status: "disabled" }),
      await patch(policy, { status: "disabled", batch_max_parallel: 3 }),
    ])
      expect(refused.problem).toMatchObject({ code: "conflict", detail: expect.stringContaining("default profile") });
    expect((await api.ask("GET", policy)).body).toMatchObject({ status: "active", batch_max_parallel: 10 });
    expect((await patch(policy, { status: "active", batch_max_parallel: 3 })).body.batch_max_parallel).toBe(3);
  });

  it("asks for no second person on a hub without sign-in, where nobody could approve anything or take the rule back", async () => {
    const { siteId, profileId } = await seedApi(api, "alone");
    const profiles = `${SITES}/${siteId}/profiles`;
    const rule = { second_person: ["erase", "scripts"] };
    for (const refused of [
      await patch(`${profiles}/${profileId}`, rule),
      await patch(`${SITES}/${siteId}/policy`, rule),
      await api.ask("POST", profiles, { name: "ruled", ...rule }),
    ])
      expect(refused.problem).toMatchObject({ code: "conflict", errors: [{ pointer: "/second_person" }] });
    const set = "update maas_site_profiles set second_person = '{erase}' where id = $1";
    await api.database.database.pool.query(set, [profileId]);
    const kept = { second_person: ["erase"], batch_max_parallel: 4 };
    expect((await patch(`${profiles}/${profileId}`, kept)).body).toMatchObject(kept);
  });

  it("cannot be set to a disabled profile", async () => {
    const { siteId, profileId } = await seedApi(api, "chosen");
    const site = `${SITES}/${siteId}`;
    const { id } = (await api.ask("POST", `${site}/profiles`, { name: "gpu" })).body;
    expect((await patch(`${site}/profiles/${id}`, { status: "disabled" })).body.status).toBe("disabled");
    expect((await patch(site, { default_profile_id: id })).problem).toMatchObject({
      code: "conflict",
      errors: [{ pointer: "/default_profile_id" }],
    });
    expect((await api.ask("GET", site)).body.default_profile_id).toBe(profileId);
    await patch(`${site}/profiles/${id}`, { status: "active" });
    expect((await patch(site, { default_profile_id: id })).body.default_profile_id).toBe(id);
    expect((await patch(`${site}/profiles/${profileId}`, { status: "disabled" })).body.status).toBe("disabled");
  });

  it("refuses a boot disk pattern whose search would not end, in a create, a change and the policy route", async () => {
    const { siteId, profileId } = await seedApi(api, "endless");
    const site = `${SITES}/${siteId}`;
    const fields = { boot_disk_pattern: "^(boss|m\\.2 ?)+(a+)+$" };
    const answers = [
      await api.ask("POST", `${site}/profiles`, { name: "slow", ...fields }),
      await patch(`${site}/profiles/${profileId}`, fields),
      await patch(`${site}/policy`, fields),
    ];
    for (const { problem } of answers)
      expect(problem).toMatchObject({
        status: 422,
        code: "pattern_endless",
        errors: [{ pointer: "/boot_disk_pattern" }],
        detail: expect.stringContaining("Write it without the inner repetition"),
      });
    const honest = await patch(`${site}/policy`, { boot_disk_pattern: "^(boss|m\\.2).*480" });
    expect(honest.body.boot_disk_pattern).toBe("^(boss|m\\.2).*480");
  });

  it("stays active when one request chooses it and another disables it at once", async () => {
    const { siteId } = await seedApi(api, "raced");
    const site = `${SITES}/${siteId}`;
    for (let round = 0; round < 8; round += 1) {
      const { id } = (await api.ask("POST", `${site}/profiles`, { name: `round-${round}` })).body;
      const profile = `${site}/profiles/${id}`;
      const [siteTag, profileTag] = [await etagOf(site), await etagOf(profile)];
      const both = await Promise.all([
        api.ask("PATCH", site, { default_profile_id: id }, siteTag),
        round % 2 === 0 ? api.ask("DELETE", profile) : api.ask("PATCH", profile, { status: "disabled" }, profileTag),
      ]);
      expect(both.map(({ status }) => status).filter((status) => status < 300)).toHaveLength(1);
      const { default_profile_id } = (await api.ask("GET", site)).body;
      expect((await api.ask("GET", `${site}/profiles/${default_profile_id}`)).body.status).toBe("active");
    }
  });
});
