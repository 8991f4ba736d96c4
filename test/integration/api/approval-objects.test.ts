/** What an approval is for: the objects that the hub found when it asked, and every way by which hosts would get a profile that asks less. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededApi, seedApi } from "../../support/api-harness.ts";
import { ApprovalWorld, asked, code, REASON } from "../../support/approval-world.ts";

describe("an approval", () => {
  let world: ApprovalWorld;
  let site: SeededApi;
  beforeAll(async () => {
    world = await ApprovalWorld.start();
    site = await seedApi(world.api, "dc1");
  });
  afterAll(() => world.close());

  const profilesOf = ({ siteId }: SeededApi) => `/maas-sites/${siteId}/profiles`;
  async function profile(at: SeededApi, body: object): Promise<string> {
    const answer = await world.post("dave", profilesOf(at), body);
    expect(answer.status, JSON.stringify(answer.problem)).toBe(201);
    return answer.body.id;
  }
  const entriesOf = async (id: string) =>
    (await world.shown(id)).because.map((one: { entry: string; profile: string }) => `${one.entry} ${one.profile}`);

  it("of a filter is for the nodes that matched when the hub asked, and names them", async () => {
    await world.patched(site, { second_person: ["erase"] });
    const [one, two, other] = [await world.node(site), await world.node(site), await world.node(site)];
    const put = (rack: string | null, id: string) =>
      world.query("update nodes set rack = $1 where id = $2", [rack, id]);
    for (const id of [one, two]) await put("r7", id);
    const body = {
      ...{ site_id: site.siteId, operation: { mode: "reimage", ...REASON } },
      ...{ filter: { rack: "r7" }, expected_count: 2 },
    };
    const send = (approval?: string) => world.post("ann", "/decommissions/batch", body, approval);
    expect((await world.post("ann", "/decommissions/batch", { ...body, plan: true })).status).toBe(202);
    const approval = asked(await send());
    const names = (await world.query("select hostname from nodes where rack = 'r7' order by hostname")).rows;
    expect((await world.shown(approval)).does).toContain(
      `Deploy again 2 nodes of one site (${names.map(({ hostname }) => hostname).join(", ")}) (reimage,`,
    );
    await world.granted(approval);
    await put(null, two);
    expect(await code(send(approval))).toBe("count_mismatch");
    await put("r7", other);
    expect((await send(approval)).problem).toMatchObject({
      code: "approval_unusable",
      detail: expect.stringMatching(
        /matches other nodes now than when you asked for the approval: Deploy again 2 nodes .* Send the request without the header to ask for a new approval\.$/,
      ),
    });
    const different = { ...body, operation: { mode: "reimage", erase: "quick", ...REASON } };
    expect((await world.post("ann", "/decommissions/batch", different, approval)).problem).toMatchObject({
      code: "approval_unusable",
      detail: expect.stringMatching(/ It is for another request: /),
    });
    expect(asked(await send())).not.toBe(approval);
    await put(null, other);
    await put("r7", two);
    const done = await send(approval);
    expect([done.status, done.body.accepted]).toEqual([202, 2]);
  });

  it("of a change of the default profile is for the profile that was the default when the hub asked", async () => {
    const at = await seedApi(world.api, "dc2");
    await world.patched(at, { second_person: ["scripts"] });
    const same = await profile(at, { name: "same", second_person: ["scripts"] });
    const more = await profile(at, { name: "more", second_person: ["erase", "scripts"] });
    const lax = asked(await world.post("dave", profilesOf(at), { name: "lax" }));
    await world.granted(lax, "dora");
    const { id: laxId } = (await world.post("dave", profilesOf(at), { name: "lax" }, lax)).body;
    const [sitePath, policy] = [`/maas-sites/${at.siteId}`, `/maas-sites/${at.siteId}/policy`];
    const scripts = { commissioning_scripts: ["burn-in"] };
    const move = { default_profile_id: laxId };
    const [change, moved] = [
      asked(await world.patch("dave", policy, scripts)),
      asked(await world.patch("dave", sitePath, move)),
    ];
    for (const id of [change, moved]) await world.granted(id, "dora");
    const setDefault = (id: string) =>
      world.query("update maas_sites set default_profile_id = $1 where id = $2", [id, at.siteId]);
    for (const id of [same, more]) {
      await setDefault(id);
      for (const answer of [
        await world.patch("dave", policy, scripts, change),
        await world.patch("dave", sitePath, move, moved),
      ])
        expect(answer.problem).toMatchObject({
          code: "approval_unusable",
          detail: expect.stringMatching(/Another profile is the site's default profile now than when you asked/),
        });
    }
    await setDefault(at.profileId);
    expect((await world.patch("dave", policy, scripts, change)).status).toBe(200);
    expect((await world.patch("dave", sitePath, move, moved)).status).toBe(200);
  });

  it("is needed to enable a profile again that asks less than another profile, or has scripts of its own", async () => {
    const at = await seedApi(world.api, "dc3");
    const scripts = { commissioning_scripts: ["burn-in"] };
    const lax = await profile(at, { name: "lax" });
    const full = await profile(at, { name: "full", second_person: ["erase", "scripts"] });
    const path = (id: string) => `${profilesOf(at)}/${id}`;
    for (const id of [lax, full]) await world.send("dave", "DELETE", path(id));
    await world.patched(at, { second_person: ["scripts"] });
    const enable = (id: string, more: object = {}) => world.patch("dave", path(id), { status: "active", ...more });
    expect((await enable(full)).status).toBe(200);
    expect((await enable(full)).status).toBe(200);
    expect((await enable(at.profileId)).status).toBe(200);
    const enabled = asked(await enable(lax));
    expect(await entriesOf(enabled)).toEqual(["scripts default", "erase full", "scripts full"]);
    expect((await world.shown(enabled)).does).toBe("Enable the profile lax again (second_person).");
    const rules = { second_person: ["erase", "scripts"] };
    expect(await entriesOf(asked(await enable(lax, { ...rules, ...scripts })))).toContain("scripts lax");
    await world.granted(enabled, "dora");
    expect((await world.patch("dave", path(lax), { status: "active" }, enabled)).status).toBe(200);
    expect((await world.patch("dave", path(lax), { status: "disabled" })).status).toBe(200);
    expect((await enable(lax, rules)).status).toBe(200);
  });

  it("is needed to onboard a host again with a profile that asks less than the profile of its node", async () => {
    const at = await seedApi(world.api, "dc4");
    const lax = await profile(at, { name: "lax" });
    const strict = await profile(at, { name: "strict", second_person: ["erase", "full_decommission"] });
    const id = await world.node({ ...at, profileId: strict });
    await world.query("update nodes set status = 'enrolling' where id = $1", [id]);
    const [{ hostname }] = (await world.query("select hostname from nodes where id = $1", [id])).rows as [
      { hostname: string },
    ];
    const host = { hostname, ipmi_ip: "10.0.0.9" };
    const request = (profileId: string) => ({ site_id: at.siteId, sku_id: at.skuId, profile_id: profileId });
    const both = { ...request(lax), nodes: [host, { hostname: "new", ipmi_ip: "10.0.0.8" }] };
    const approval = asked(await world.post("ann", "/onboardings", { ...request(lax), ...host }));
    expect(await entriesOf(approval)).toEqual(["erase strict", "full_decommission strict"]);
    expect((await world.shown(approval)).does).toBe(
      `Onboard again node ${hostname} with the profile lax in place of strict, which asks for more.`,
    );
    expect(await entriesOf(asked(await world.post("ann", "/onboardings/batch", both)))).toHaveLength(2);
    const fresh = { ...request(lax), hostname: "fresh", ipmi_ip: "10.0.0.7" };
    expect((await world.post("ann", "/onboardings", fresh)).status).toBe(202);
    const [unruled, gone] = [await world.node(at), await world.node({ ...at, profileId: strict })];
    await world.query("update nodes set hostname = 'unruled', status = 'enrolling' where id = $1", [unruled]);
    await world.query("update nodes set hostname = 'gone', status = 'deleted' where id = $1", [gone]);
    const named = (hostname: string, ipmi_ip: string) =>
      world.post("ann", "/onboardings", { ...request(lax), hostname, ipmi_ip });
    expect((await named("unruled", "10.0.0.6")).status).toBe(202);
    // A removed node has no rules any more, except about the data that it left on its disks.
    expect(await entriesOf(asked(await named("gone", "10.0.0.5")))).toEqual(["erase strict"]);
    await world.granted(approval);
    expect((await world.post("ann", "/onboardings", { ...request(lax), ...host }, approval)).status).toBe(202);
    const { rows } = await world.query("select profile_id from node_onboardings where hostname = $1", [hostname]);
    expect(rows.map((row) => row.profile_id).toSorted()).toEqual([lax, strict].toSorted());
  });
});
