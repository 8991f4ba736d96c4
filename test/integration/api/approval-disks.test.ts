/** One person alone cannot cost a node its disks while the node's profile has the entry `erase`, by whichever steps. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { retirementsOf } from "../../../hub/db/queries/machine-releases.ts";
import { type NodeId, SiteId } from "../../../shared/ids.ts";
import { type SeededApi, seedApi } from "../../support/api-harness.ts";
import { ApprovalWorld, asked, REASON } from "../../support/approval-world.ts";
import { retireNode } from "../../support/site-nodes.ts";

describe("with the entry erase alone", () => {
  let world: ApprovalWorld;
  let site: SeededApi;
  beforeAll(async () => {
    world = await ApprovalWorld.start();
    site = await seedApi(world.api, "dc1");
    await world.patched(site, { second_person: ["erase"], retired_release_after_seconds: 60 });
  });
  afterAll(() => world.close());

  async function retired(): Promise<NodeId> {
    const id = await world.node(site);
    await world.api.database.database.inTx((tx) => retireNode(tx, id));
    return id;
  }
  /** Writes what a finished release of the node's machine leaves in the database. */
  async function released(id: NodeId): Promise<void> {
    const decommission = randomUUID();
    await world.query(
      "insert into workflows (id, kind, status, stage, input) values ($1, 'release', 'completed', 'release_maas_node', '{}')",
      [decommission],
    );
    await world.query(
      `insert into node_decommissions (decommission_id, node_id, site_id, hostname, mode, reason, prior_status, released_generation)
        select $1, id, site_id, hostname, 'release', 'r', 'retired', generation from nodes where id = $2`,
      [decommission, id],
    );
  }
  async function asks(path: string, body: object): Promise<string[]> {
    const { because } = await world.shown(asked(await world.post("ann", path, body)));
    return because.map(({ entry }: { entry: string }) => entry);
  }
  const status = async (path: string, body: object): Promise<number> => (await world.post("ann", path, body)).status;

  it("a release and a remove wait for a second person, alone and in a batch, and a drain does not", async () => {
    const [id, active] = [await retired(), await world.node(site)];
    expect(await status(`/nodes/${active}/drain`, REASON)).toBe(202);
    for (const verb of ["release", "remove"]) {
      expect(await asks(`/nodes/${id}/${verb}`, REASON)).toEqual(["erase"]);
      const batch = { site_id: site.siteId, operation: { mode: verb, ...REASON }, node_ids: [id] };
      expect(await asks("/decommissions/batch", batch)).toEqual(["erase"]);
    }
    const full = { mode: "full_decommission", erase: "none", storage_cleanup: "none", ...REASON };
    expect(await asks(`/nodes/${await world.node(site)}/decommission`, full)).toEqual(["erase"]);
  });

  it("a remove waits for nobody after the release of the machine", async () => {
    const id = await retired();
    await released(id);
    expect(await status(`/nodes/${id}/remove`, REASON)).toBe(202);
  });

  it("the hub releases no retired node by itself", async () => {
    const id = await retired();
    const delay = async () => {
      const retirements = await retirementsOf(world.api.database.database.db, SiteId.parse(site.siteId));
      return retirements.get(id)?.retiredReleaseAfterSeconds;
    };
    const rules = (entries: string) =>
      world.query("update maas_site_profiles set second_person = $1 where id = $2", [entries, site.profileId]);
    const told: Record<string, unknown> = {};
    for (const entries of ["{scripts}", "{}", "{full_decommission}", "{erase,scripts}"]) {
      await rules(entries);
      told[entries] = await delay();
    }
    await rules("{erase}");
    expect(told).toEqual({ "{scripts}": 60, "{}": 60, "{full_decommission}": null, "{erase,scripts}": null });
  });

  it("another onboarding waits, by the name and by the BMC of a host whose removed node the hub did not release", async () => {
    const [left, free] = [await world.node(site), await world.node(site)];
    const names = { left: "host-left", free: "host-free" };
    const bmcs = { left: "10.9.0.1", free: "10.9.0.2" };
    for (const [id, name, bmc] of [
      [left, names.left, bmcs.left],
      [free, names.free, bmcs.free],
    ] as const) {
      await world.query("update nodes set hostname = $1, status = 'deleted' where id = $2", [name, id]);
      await world.query("update node_onboardings set ipmi_ip = $1 where node_id = $2", [bmc, id]);
    }
    await released(free);
    const request = { site_id: site.siteId, sku_id: site.skuId, profile_id: site.profileId };
    const host = (hostname: string, ipmi_ip: string) => ({ ...request, hostname, ipmi_ip });
    const again = host(names.left, "10.9.0.8");
    const approval = asked(await world.post("ann", "/onboardings", again));
    expect(await world.shown(approval)).toMatchObject({
      does: "Deploy again, with the profile default, the host of the removed node host-left: the data that is left on its disks is lost.",
      because: [{ entry: "erase", profile: "default" }],
    });
    expect(await asks("/onboardings", host("new-name", bmcs.left))).toEqual(["erase"]);
    const nodes = [
      { hostname: names.left, ipmi_ip: bmcs.left },
      { hostname: "new", ipmi_ip: "10.9.0.7" },
    ];
    expect(await asks("/onboardings/batch", { ...request, nodes })).toEqual(["erase"]);
    expect(await status("/onboardings", host(names.free, bmcs.free))).toBe(202);
    expect(await status("/onboardings", host("fresh", "10.9.0.9"))).toBe(202);
    await world.granted(approval);
    expect((await world.post("ann", "/onboardings", again, approval)).status).toBe(202);
  });

  it("a clean restart of an onboarding waits once its host is deployed", async () => {
    const id = await world.node(site);
    const { rows } = await world.query("select onboarding_id from node_onboardings where node_id = $1", [id]);
    const onboarding = rows[0]?.onboarding_id;
    const stands = (state: object) =>
      world.query("update workflows set status = 'failed_retryable', started_at = now(), state = $1 where id = $2", [
        JSON.stringify(state),
        onboarding,
      ]);
    await stands({ deployed_at: new Date().toISOString() });
    const path = `/onboardings/${onboarding}/restart-clean`;
    const approval = asked(await world.post("ann", path, REASON));
    expect(await world.shown(approval)).toMatchObject({
      does: expect.stringMatching(/^Start the onboarding of h\w+ again: release its machine, and deploy it anew\. /),
      because: [{ entry: "erase", profile: "default" }],
    });
    expect(await status(`/onboardings/${onboarding}/cancel`, REASON)).toBe(200);
    await stands({ deployed_at: null });
    expect(await status(path, REASON)).toBe(200);
  });
});
