import { afterAll, beforeAll, expect, it } from "vitest";
import { and, eq, sql } from "../../../hub/db/orm.ts";
import { nodeConditions } from "../../../hub/db/schema/index.ts";
import { type NodeId, ProfileId, SiteId } from "../../../shared/ids.ts";
import { addSchedulableNode, onboardedWith } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";

let api: ApiHarness;
let siteId: SiteId;
let profiles: string;
let skuId: string;
beforeAll(async () => {
  api = await startApi();
  const seeded = await seedApi(api);
  [siteId, skuId] = [SiteId.parse(seeded.siteId), seeded.skuId];
  profiles = `/api/v1/admin/maas-sites/${siteId}/profiles`;
});
afterAll(() => api?.close());

/** Adds a node of the profile whose host lacks a RoCE address, and has another that nobody could read. */
async function addNode(hostname: string, profileId: ProfileId): Promise<NodeId> {
  return api.database.database.inTx(async (tx) => {
    const nodeId = await addSchedulableNode(tx, { siteId, hostname, sku: skuId });
    await onboardedWith(tx, { nodeId, siteId, profileId, hostname });
    const said = { nodeId, generation: 0, source: "hub", message: "", observedAt: sql`now()` };
    await tx
      .delete(nodeConditions)
      .where(and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.type, "hardware.sku")));
    await tx.insert(nodeConditions).values([
      { ...said, type: "network.roce", status: "Unknown", reason: "Unreadable" },
      { ...said, type: "network.addresses", status: "False", reason: "AddressesMissing" },
      { ...said, type: "hardware.sku", status: "False", reason: "OtherHardware" },
    ]);
    return nodeId;
  });
}

async function reasonsOf(nodeId: NodeId): Promise<Record<string, string>> {
  const rows = await api.database.database.db.select().from(nodeConditions).where(eq(nodeConditions.nodeId, nodeId));
  const ours = rows.filter(({ type }) => /^(network|hardware)/.test(type));
  return Object.fromEntries(ours.map(({ type, reason }) => [type, reason]));
}

async function change(profileId: string, patch: object): Promise<void> {
  const etag = (await api.ask("GET", `${profiles}/${profileId}`)).headers.get("etag") ?? "";
  const answer = await api.ask("PATCH", `${profiles}/${profileId}`, patch, { "if-match": etag });
  expect(answer.status, JSON.stringify(answer.problem)).toBe(200);
}

it("a change of roce_required counts at once for the nodes of the profile, and for no others", async () => {
  const make = async (name: string) => ProfileId.parse((await api.ask("POST", profiles, { name })).body.id);
  const [mine, other] = [await make("a"), await make("b")];
  const [node, foreign] = [await addNode("n1", mine), await addNode("n2", other)];
  const barred = {
    "network.roce": "Unreadable",
    "network.addresses": "AddressesMissing",
    "hardware.sku": "OtherHardware",
  };
  const allowed = { ...barred, "network.roce": "MissingButAllowed", "network.addresses": "MissingButAllowed" };
  await change(mine, { roce_required: false });
  expect([await reasonsOf(node), await reasonsOf(foreign)]).toEqual([allowed, barred]);
  await change(mine, { name: "a2" });
  expect(await reasonsOf(node)).toEqual(allowed);
  await change(mine, { roce_required: true });
  expect([await reasonsOf(node), await reasonsOf(foreign)]).toEqual([barred, barred]);
});
