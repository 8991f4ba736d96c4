import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ApiHarness, seedApi, siteBody, startApi } from "../../support/api-harness.ts";
import { commandLine } from "../../support/command-line.ts";

let api: ApiHarness;
let muster: ReturnType<typeof commandLine>;
let seed: Awaited<ReturnType<typeof seedApi>>;
let otherSite: string;

beforeAll(async () => {
  api = await startApi();
  muster = commandLine({ api, url: await api.listen(), cwd: tmpdir() });
  seed = await seedApi(api);
  otherSite = (await api.ask("POST", "/api/v1/admin/maas-sites", siteBody("dc2"))).body.id;
});
afterAll(() => api.close());

const addNode = async (hostname: string, siteId: string, status = "active"): Promise<string> => {
  const id = randomUUID();
  await api.database.database.pool.query(
    `insert into nodes (id, hostname, site_id, sku, gpus_total, region_code, status, onboarding_mode)
     values ($1, $2, $3, $4, 8, 'r1', $5, 'manual')`,
    [id, hostname, siteId, seed.skuId, status],
  );
  return id;
};
const asked = async (args: readonly string[]) => {
  const answer = await muster([...args, "--output", "json"]);
  expect(answer).toMatchObject({ exitCode: 0, stderr: "" });
  return JSON.parse(answer.stdout);
};

describe("the command line with names", () => {
  it("finds a site, and the profiles of the site, in the path, in flags and in a whole body", async () => {
    expect((await asked(["get-maas-site", "dc1"])).id).toBe(seed.siteId);
    expect((await asked(["get-maas-site-profile", "dc1", "default"])).id).toBe(seed.profileId);
    const other = await asked(["get-maas-site-profile", otherSite, "default"]);
    expect(other, "each site has a default of its own").toMatchObject({ site_id: otherSite });
    await asked(["create-maas-site-profile", "dc1", "--name", "quick"]);
    const changed = await asked(["update-maas-site", "dc1", "--default-profile-id", "quick"]);
    await asked(["update-maas-site", "dc1", "--default-profile-id", "default"]);
    expect(changed.default_profile_id).toBe((await asked(["get-maas-site-profile", "dc1", "quick"])).id);
    const selectors = ["--site-id", "dc1", "--profile-id", "quick", "--sku-id", seed.skuId];
    const { onboarding_id: id } = await asked([
      ...["create-onboarding", ...selectors, "--hostname", "n-1", "--ipmi-ip", "10.0.1.1"],
    ]);
    const whole = { site_id: "dc1", profile_id: "quick", sku_id: seed.skuId, hostname: "n-2", ipmi_ip: "10.0.1.2" };
    await asked(["create-onboarding", "--json", JSON.stringify(whole)]);
    expect((await asked(["list-onboardings", "--site-id", "dc1", "--hostname", "n-1"])).items).toMatchObject([
      { onboarding_id: id, profile_id: changed.default_profile_id },
    ]);
    expect((await asked(["list-onboardings", "--site-id", "dc2"])).items).toEqual([]);
  });

  it("finds a node by its hostname, ignoring deleted nodes with that hostname", async () => {
    await addNode("c07u41", seed.siteId, "deleted");
    const id = await addNode("c07u41", seed.siteId);
    expect((await asked(["get-node", "c07u41"])).id).toBe(id);
    const drained = await asked(["drain-node", "c07u41", "--reason", "new PSU"]);
    expect(drained).toMatchObject({ node_id: id, mode: "drain" });
    const { decommission_id } = drained;
    expect(await asked(["get-decommission", "c07u41"])).toMatchObject({ decommission_id, mode: "drain" });
    expect((await asked(["list-decommissions", "--node-id", "c07u41"])).items).toMatchObject([{ decommission_id }]);
  });

  it("finds the unfinished onboarding of a hostname", async () => {
    const selectors = ["--site-id", "dc1", "--profile-id", "default", "--sku-id", seed.skuId];
    const host = ["--hostname", "again", "--ipmi-ip", "10.0.2.1"];
    const create = () => asked(["create-onboarding", ...selectors, ...host]);
    const first = await create();
    const cancelled = await asked(["cancel-onboarding", "again", "--reason", "wrong rack"]);
    expect(cancelled).toMatchObject({ onboarding_id: first.onboarding_id, status: "cancelled" });
    const over = await muster(["cancel-onboarding", "again", "--reason", "once more"]);
    expect(over).toMatchObject({ exitCode: 2, stdout: "" });
    expect(over.stderr).toMatch(/^<id>: hostname again is in no item of list-onboardings but those whose status is /);
    expect(over.stderr).toContain(first.onboarding_id);
    const read = await muster(["get-onboarding", "again", "--output", "json"]);
    expect(read).toMatchObject({
      exitCode: 0,
      stderr: "again is cancelled; this is the newest one of that hostname.",
    });
    expect(JSON.parse(read.stdout).onboarding_id).toBe(first.onboarding_id);
    const second = await create();
    await asked(["cancel-onboarding", "again", "--reason", "wrong rack"]);
    const newest = await muster(["get-onboarding", "again", "--output", "json"]);
    expect(JSON.parse(newest.stdout).onboarding_id, "the newest of two").toBe(second.onboarding_id);
    const third = await create();
    expect((await asked(["get-onboarding", "again"])).onboarding_id).toBe(third.onboarding_id);
  });

  it("shows the newest deleted node of a hostname, and changes no deleted node", async () => {
    await addNode("gone", seed.siteId, "deleted");
    const later = await addNode("gone", seed.siteId, "deleted");
    await api.database.database.pool.query("update nodes set created_at = now() + interval '1 hour' where id = $1", [
      later,
    ]);
    const read = await muster(["get-node", "gone", "--output", "json"]);
    expect(read).toMatchObject({ exitCode: 0, stderr: "gone is deleted; this is the newest one of that hostname." });
    expect(JSON.parse(read.stdout).id).toBe(later);
    expect(await muster(["cordon-node", "gone", "--reason", "a fan"])).toMatchObject({ exitCode: 2, stdout: "" });
  });

  it("refuses an ambiguous name, lists the ids, and does nothing", async () => {
    const ids = [await addNode("twin", seed.siteId), await addNode("twin", otherSite)];
    const before = await api.counts();
    const refused = await muster(["drain-node", "twin", "--reason", "which one?"]);
    expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
    expect(refused.stderr).toMatch(/^<id>: hostname twin is in 2 items of list-nodes\. Nothing was done; give the id /);
    for (const id of ids) expect(refused.stderr).toContain(id);
    expect(await api.counts()).toEqual(before);
    expect((await asked(["get-node", ids[1] ?? ""])).site_id).toBe(otherSite);
  });

  it.each([
    { args: ["get-node", "nobody"], status: 2, says: "<id>: hostname nobody is in no item of list-nodes." },
    { args: ["probe-maas-site", "dc9"], status: 2, says: "<id>: name dc9 is in no item of list-maas-sites." },
    { args: ["list-nodes", "--site-id", "dc9"], status: 2, says: "--site-id: name dc9 is in no item" },
    { args: ["get-maas-site-profile", "dc1", "fast"], status: 2, says: "<profile_id>: name fast is in no item" },
    { args: ["get-node", "No_Name"], status: 1, says: "validation_failed (400)" },
    { args: ["get-node", randomUUID()], status: 1, says: "not_found (404)" },
  ])("reports for $args that nothing has that name", async ({ args, status, says }) => {
    const { exitCode, stdout, stderr } = await muster(args);
    expect({ exitCode, stdout }).toEqual({ exitCode: status, stdout: "" });
    expect(stderr).toContain(says);
  });

  it("treats a name that looks like an id as an id", async () => {
    const name = randomUUID();
    await addNode(name, seed.siteId);
    expect((await muster(["get-node", name])).stderr).toMatch(/^not_found \(404\)/);
  });

  it("shows in the help where a name is allowed", async () => {
    expect((await muster(["help", "drain-node"])).stdout).toMatch(/^ {2}<id> {2}id \| hostname$/m);
    expect((await muster(["help", "create-onboarding"])).stdout).toMatch(/^ {2}--site-id {2}id \| name, needed$/m);
  });
});
