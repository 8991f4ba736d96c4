import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { desc, eq, inArray, like } from "../../../hub/db/orm.ts";
import { deleteNodeThatNeverEnrolled } from "../../../hub/db/queries/nodes.ts";
import { domainEvents, nodeCertificates, nodes } from "../../../hub/db/schema/index.ts";
import { inheritHealthOverrides, setHealthOverride } from "../../../hub/node/health-override.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { type ApiHarness, startApiWithSite } from "../../support/api-harness.ts";
import { addNodeInService } from "../../support/site-nodes.ts";

describe("the health overrides of a node that is gone", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  beforeAll(async () => {
    ({ api, siteId } = await startApiWithSite());
  });
  afterAll(() => api.close());

  const db = () => api.database.database.db;
  const inTx: ApiHarness["database"]["database"]["inTx"] = (work) => api.database.database.inTx(work);
  const node = async (id: NodeId) => (await api.ask("GET", `/api/v1/admin/nodes/${id}`)).body;
  const active = (hostname: string): Promise<NodeId> => inTx((tx) => addNodeInService(tx, { siteId, hostname }));

  it("a health override of a deleted node's machine bars the next node of the machine", async () => {
    const [old, other, heir] = [await active("o-2"), await active("o-3"), await active("o-4")];
    const said = { source: "disk-erase", target: "m4ch1n", reason: "not erased", setBy: "operator:ann" };
    await inTx((tx) => setHealthOverride(tx, { ...said, nodeId: old }));
    await inTx((tx) => setHealthOverride(tx, { ...said, nodeId: other }));
    await inTx((tx) => tx.update(nodes).set({ status: "deleted" }).where(eq(nodes.id, old)));
    const inherit = (machine: object) =>
      inTx((tx) =>
        inheritHealthOverrides(tx, { nodeId: heir, siteId, maasSystemId: "m4ch1n", macAddresses: [], ...machine }),
      );
    await inherit({});
    expect((await node(heir)).health_overrides).toMatchObject([{ target: "m4ch1n", set_by: "operator:ann" }]);
    expect((await node(heir)).unschedulable_reasons.join()).toContain("health override disk-erase: not erased");
    expect((await node(old)).health_overrides).toEqual([]);
    expect((await node(other)).health_overrides, "a node that is not deleted keeps its own").toHaveLength(1);
    const events = () =>
      db()
        .select()
        .from(domainEvents)
        .where(like(domainEvents.type, "node.health_override.%"))
        .orderBy(desc(domainEvents.seq))
        .limit(2);
    expect(await events()).toMatchObject([
      { type: "node.health_override.set", data: { node_id: heir, hostname: "o-4", needed_erase: "secure" } },
      { type: "node.health_override.lifted", data: { node_id: old, hostname: "o-2", source: "disk-erase" } },
    ]);
    await inherit({});
    expect((await node(heir)).health_overrides, "nothing is left to inherit").toHaveLength(1);
    // The test cancels the onboarding of the node `heir` before the host's agent enrolls.
    const last = await active("o-4b");
    await inTx(async (tx) => {
      await tx.update(nodes).set({ status: "enrolling" }).where(eq(nodes.id, heir));
      await tx.delete(nodeCertificates).where(eq(nodeCertificates.nodeId, heir));
      expect(await deleteNodeThatNeverEnrolled(tx, heir)).toBe(true);
    });
    await inherit({ nodeId: last });
    expect((await node(last)).health_overrides, "another site, for all the hub knows").toEqual([]);
    await api.database.database.pool.query(
      `with onboarding as (insert into workflows (id, kind, status, stage, input, completed_at)
         values ($1, 'onboard', 'cancelled', 'wait_for_agent', '{}', now()) returning id)
       insert into node_onboardings (onboarding_id, node_id, site_id, profile_id, sku_id, hostname, ipmi_ip)
         select id, $2, $3, $3, 's', 'o-4', '10.0.0.4' from onboarding`,
      [randomUUID(), heir, siteId],
    );
    await inherit({ nodeId: last });
    expect((await node(last)).health_overrides).toMatchObject([{ target: "m4ch1n", set_by: "operator:ann" }]);
  });

  it("a host that was deleted in MAAS and enlisted again keeps its override, by the MAC addresses that Muster knows", async () => {
    const [byToken, byInventory, stranger] = [await active("o-5"), await active("o-6"), await active("o-7")];
    const [first, second] = [await active("o-8"), await active("o-9")];
    const said = { source: "disk-erase", target: "0ld1d", reason: "not erased", setBy: "operator:ann" };
    for (const [nodeId, neededErase] of [
      [byToken, "secure"],
      [byInventory, "quick"],
      [stranger, "secure"],
    ] as const)
      await inTx((tx) => setHealthOverride(tx, { ...said, nodeId, neededErase, since: new Date(0) }));
    await inTx((tx) =>
      tx
        .update(nodes)
        .set({ status: "deleted" })
        .where(inArray(nodes.id, [byToken, byInventory])),
    );
    await api.database.database.pool.query(
      `insert into enrollment_tokens (token_sha256, node_id, generation, maas_system_id, bound_macs, expires_at)
       values ('x', $1, 0, '0ld1d', '{02:00:00:00:00:51,00:00:00:00:00:51}', now()), ('z', $1, 0, 'later', '{00:00:00:00:00:54}', now()),
              ('y', $2, 0, '0ld1d', '{00:00:00:00:00:53}', now())`,
      [byToken, stranger],
    );
    await api.database.database.pool.query(
      "insert into node_inventories (node_id, inventory) values ($1, $3), ($2, $4)",
      [
        byInventory,
        byToken,
        {
          interfaces: [
            { name: "lo", mac: "00:00:00:00:00:00" },
            { name: "usb0", mac: "02:00:00:00:00:51" },
            { name: "eno1", mac: "00:00:00:00:00:5A" },
          ],
        },
        { interfaces: [{ name: "eno1", mac: "00:00:00:00:00:55" }] },
      ],
    );
    const inherit = (nodeId: NodeId, ...macAddresses: string[]) =>
      inTx((tx) => inheritHealthOverrides(tx, { nodeId, siteId, maasSystemId: "n3w1d", macAddresses }));
    await inherit(first, "00:00:00:00:00:00", "00:00:00:00:00:99", "02:00:00:00:00:51");
    await inherit(first, "00:00:00:00:00:54", "00:00:00:00:00:55");
    expect((await node(first)).health_overrides, "another host").toEqual([]);
    await inherit(first, "00:00:00:00:00:52", "00:00:00:00:00:51");
    const since = new Date(0).toISOString();
    expect((await node(first)).health_overrides).toMatchObject([{ target: "n3w1d", needed_erase: "secure", since }]);
    await inTx((tx) => setHealthOverride(tx, { ...said, nodeId: second, neededErase: "secure", reason: "its own" }));
    await inherit(second, "00:00:00:00:00:5a", "00:00:00:00:00:53");
    expect((await node(second)).health_overrides, "the stronger demand stays").toMatchObject([{ reason: "its own" }]);
    expect((await node(byInventory)).health_overrides).toEqual([]);
    expect((await node(stranger)).health_overrides, "the host of a node that is not deleted").toHaveLength(1);
  });
});
