/** By what the hub judges an adoption: for which machines its approval is, and which profiles, machines and hosts it refuses. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AdoptionWorld } from "../../support/adoption-world.ts";
import type { Answer } from "../../support/api-harness.ts";
import { ApprovalWorld, asked } from "../../support/approval-world.ts";
import { afterAnotherSession } from "../../support/other-session.ts";

let world: AdoptionWorld;
let people: ApprovalWorld;
beforeAll(async () => {
  world = await AdoptionWorld.start("3.7.3", async (maasFacts) => {
    people = await ApprovalWorld.start({ maasFacts });
    return people.api;
  });
});
afterAll(async () => {
  await people?.close();
  await world?.region.close();
});

const profile = async (name: string): Promise<string> => {
  const answer = await people.post("dave", `/maas-sites/${world.siteId}/profiles`, { name });
  expect(answer.status, JSON.stringify(answer.problem)).toBe(201);
  return answer.body.id;
};

describe("an adoption with a profile that asks for less", () => {
  let lax: string;
  beforeAll(async () => {
    lax = await profile("lax");
  });
  afterAll(() => setRules("{}"));

  const adopt = (body: object, approval?: string): Promise<Answer> =>
    people.post(
      "ann",
      `/maas-sites/${world.siteId}/adoptions`,
      { sku_id: world.skuId, profile_id: lax, ...body },
      approval,
    );
  const setRules = (rules: string) =>
    people.query("update maas_site_profiles set second_person = $1 where id = $2", [rules, world.profileId]);

  it("by a filter waits for a second person, who approves exactly the machines that matched, by their names", async () => {
    await setRules("{erase}");
    const tagged = (one: { tags: string[] }) => void Object.assign(one, { tags: ["gpu"] });
    const [, swapped, other] = [
      world.deployed("host-1", tagged),
      world.deployed("host-2", tagged),
      world.deployed("host-3"),
    ];
    await world.poll();
    const body = { filter: { tags: ["gpu"] }, expected_count: 2 };
    expect((await adopt({ ...body, plan: true })).body).toMatchObject({ plan: true, matched: 2 });
    const approval = asked(await adopt(body));
    expect(await people.shown(approval)).toMatchObject({
      does: "Give 2 adopted machines (host-1, host-2) the profile lax in place of default, which asks for more.",
      because: [{ entry: "erase", profile: "default" }],
    });
    await people.granted(approval);
    const retag = async (machine: typeof other, tags: string[]) => {
      world.change(machine, (one) => void Object.assign(one, { tags }));
      await world.poll();
    };
    const unusable = (detail: RegExp) => ({ code: "approval_unusable", detail: expect.stringMatching(detail) });
    const otherMachines = unusable(/The filter of the request matches other machines now than when you asked/);
    await retag(other, ["gpu"]);
    expect((await adopt(body, approval)).problem).toMatchObject(otherMachines);
    await retag(swapped, []);
    expect((await adopt(body, approval)).problem).toMatchObject(otherMachines);
    expect(asked(await adopt(body))).not.toBe(approval);
    const { rows } = await people.query("select from nodes");
    expect(rows).toEqual([]);

    await retag(other, []);
    await retag(swapped, ["gpu"]);
    const list = { hostnames: ["host-1", "host-2"] };
    expect((await adopt(list, approval)).problem).toMatchObject(unusable(/It is for another request: /));
    expect((await adopt(body, approval)).body).toMatchObject({ matched: 2, adopted: 2 });
    const profiles = await people.query("select distinct profile_id from node_adoptions");
    expect(profiles.rows).toEqual([{ profile_id: lax }]);
  });

  it("is judged by the rules that another hub writes at the same moment", async () => {
    await setRules("{}");
    const { systemId } = world.deployed("host-4");
    await world.poll();
    const changes = [
      ["select from maas_sites where id = $1 for no key update", [world.siteId]],
      ["update maas_site_profiles set second_person = '{scripts}' where id = $1", [world.profileId]],
    ] as const;
    const answer = await afterAnotherSession(people.api.database.database.pool, changes, () =>
      adopt({ system_ids: [systemId] }),
    );
    expect((await people.shown(asked(answer))).because).toEqual([{ entry: "scripts", profile: "default" }]);
  });
});

describe("an adoption", () => {
  it("is refused with a disabled profile, and at a disabled site", async () => {
    const { systemId } = world.deployed("late-1");
    await world.poll();
    const off = await profile("off");
    await people.send("dave", "DELETE", `/maas-sites/${world.siteId}/profiles/${off}`);
    const body = { system_ids: [systemId], profile_id: off };
    expect((await world.adopt(body)).problem).toMatchObject({ code: "profile_disabled" });
    expect((await world.plan(body)).problem).toMatchObject({ code: "profile_disabled" });
    const setSite = (status: string) =>
      people.query("update maas_sites set status = $1 where id = $2", [status, world.siteId]);
    await setSite("disabled");
    expect((await world.adopt({ system_ids: [systemId] })).problem).toMatchObject({ code: "site_disabled" });
    await setSite("active");
    expect((await world.adopt({ system_ids: [systemId] })).body).toMatchObject({ adopted: 1 });
  });

  it("is refused for a machine that the watcher could not read last, although the hub has read the machine before", async () => {
    const { systemId } = world.deployed("odd-1");
    await world.poll();
    const setUnreadable = (ids: string[]) =>
      people.query("update maas_site_watches set unreadable_system_ids = $1 where site_id = $2", [ids, world.siteId]);
    await setUnreadable(["other", systemId]);
    const { body } = await world.adopt({ system_ids: [systemId] });
    expect(body.machines).toMatchObject([{ outcome: "refused", refusals: [{ code: "machine_unreadable" }] }]);
    await setUnreadable([]);
    expect((await world.adopt({ system_ids: [systemId] })).body).toMatchObject({ adopted: 1 });
  });
});

describe("an order of commands", () => {
  it("leaves out hosts that do not run, and hosts that no MAC address can prove, and refuses to name them", async () => {
    const runs = world.deployed("ordered-a");
    const released = world.deployed("ordered-b");
    const unproven = world.deployed("ordered-c");
    await world.poll();
    const ids: string[] = [];
    for (const machine of [runs, released, unproven]) ids.push(await world.adopted(machine));
    world.status(released, "ready");
    world.change(unproven, (one) => {
      for (const nic of one.interfaces) nic.macAddress = "02:00:00:00:00:01";
    });
    await world.poll();
    const refused = await world.order({ node_ids: ids });
    expect(refused.problem).toMatchObject({ code: "conflict", detail: expect.stringContaining("2 of the 3 nodes") });
    expect(refused.problem.errors).toEqual([
      { pointer: "/node_ids/1", message: expect.stringMatching(/of ordered-b is not Deployed in MAAS$/) },
      { pointer: "/node_ids/2", message: expect.stringMatching(/^MAAS knows no MAC address that only machine/) },
    ]);
    const ordered = (await world.order()).body;
    const hosts: string[] = ordered.commands.map((one: { hostname: string }) => one.hostname);
    expect(hosts.filter((name) => name.startsWith("ordered-"))).toEqual(["ordered-a"]);
    expect(ordered.left_out).toBe(2);
    expect(hosts).toEqual(hosts.toSorted());
  });
});
