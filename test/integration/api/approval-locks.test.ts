/**
 * A request that may need a second person, and another hub that changes the rules at the same moment. The hub locks what decides, so the request waits
 * for the other change, and is judged by the rules that hold when the request is carried out.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, type SeededApi, seedApi } from "../../support/api-harness.ts";
import { ApprovalWorld, asked } from "../../support/approval-world.ts";
import { afterAnotherSession } from "../../support/other-session.ts";

let world: ApprovalWorld;
beforeAll(async () => {
  world = await ApprovalWorld.start();
});
afterAll(() => world?.close());

const SCRIPTS = { commissioning_scripts: ["burn-in"] };
let made = 0;
/** A site whose profiles ask for nobody: the default profile and the profile `lax`. */
async function newSite(): Promise<SeededApi & { path: string; lax: string }> {
  made += 1;
  const site = await seedApi(world.api, `dc${made}`);
  const path = `/maas-sites/${site.siteId}`;
  const { body } = await world.post("dave", `${path}/profiles`, { name: "lax" });
  return { ...site, path, lax: body.id };
}
type Change = readonly [text: string, values: readonly unknown[]];
/** The changes that a hub makes when it changes a profile of the site: it locks the site first. */
const rulesChange = ({ siteId }: SeededApi, profileId: string): Change[] => [
  ["select from maas_sites where id = $1 for no key update", [siteId]],
  ["update maas_site_profiles set second_person = '{scripts}' where id = $1", [profileId]],
];
const defaultChange = ({ siteId }: SeededApi, profileId: string): Change[] => [
  ["update maas_sites set default_profile_id = $1 where id = $2", [profileId, siteId]],
];
const racing = (changes: readonly Change[], request: () => Promise<Answer>): Promise<Answer> =>
  afterAnotherSession(world.api.database.database.pool, changes, request);
const because = async (answer: Answer): Promise<unknown> => (await world.shown(asked(answer))).because;
const ASKS = [{ entry: "scripts", profile: "default" }];

describe("a request is judged by the rules that another hub writes at the same moment, if the request", () => {
  it("creates a profile", async () => {
    const site = await newSite();
    const create = () => world.post("dave", `${site.path}/profiles`, { name: "new" });
    expect(await because(await racing(rulesChange(site, site.profileId), create))).toEqual(ASKS);
  });

  it("enables a profile again", async () => {
    const site = await newSite();
    const path = `${site.path}/profiles/${site.lax}`;
    expect((await world.send("dave", "DELETE", path)).status).toBe(204);
    const enable = () => world.patch("dave", path, { status: "active" });
    expect(await because(await racing(rulesChange(site, site.profileId), enable))).toEqual(ASKS);
  });

  it("makes another profile the default of a site", async () => {
    const site = await newSite();
    const move = () => world.patch("dave", site.path, { default_profile_id: site.lax });
    expect(await because(await racing(rulesChange(site, site.profileId), move))).toEqual(ASKS);
  });
});

describe("an approval is not used for another default profile, which another hub sets at the same moment, if the request", () => {
  const unusable = {
    code: "approval_unusable",
    detail: expect.stringMatching(/Another profile is the site's default profile now than when you asked/),
  };
  const given = async (answer: Answer): Promise<string> => {
    const approval = asked(answer);
    await world.granted(approval, "dora");
    return approval;
  };

  it("changes the policy of a site", async () => {
    const site = await newSite();
    await world.patched(site, { second_person: ["scripts"] });
    const change = (approval?: string) => world.patch("dave", `${site.path}/policy`, SCRIPTS, approval);
    const approval = await given(await change());
    const answer = await racing(defaultChange(site, site.lax), () => change(approval));
    expect(answer.problem).toMatchObject(unusable);
    expect((await world.shown(approval)).state).toBe("approved");
  });

  it("makes a third profile the default of a site", async () => {
    const site = await newSite();
    const { id: third } = (await world.post("dave", `${site.path}/profiles`, { name: "third" })).body;
    await world.patched(site, { second_person: ["scripts"] });
    const move = (approval?: string) => world.patch("dave", site.path, { default_profile_id: site.lax }, approval);
    const approval = await given(await move());
    const answer = await racing(defaultChange(site, third), () => move(approval));
    expect(answer.problem).toMatchObject(unusable);
    expect((await world.shown(approval)).state).toBe("approved");
  });
});
