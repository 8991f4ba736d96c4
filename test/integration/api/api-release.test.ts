import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordMachineReleased } from "../../../hub/db/queries/decommissions.ts";
import { nodeMaasState, nodeOnboardings, workflows } from "../../../hub/db/schema/index.ts";
import { createNode } from "../../../hub/node/create-node.ts";
import { deleteNode } from "../../../hub/node/lifecycle.ts";
import { moveNode } from "../../../hub/node/move-node.ts";
import { NodeId, ProfileId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { doneAudits } from "../../support/done-audits.ts";
import { retireNode } from "../../support/site-nodes.ts";

const REASON = { reason: "no longer needed" };

describe("the release of a node's machine over the API", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  let profileId: ProfileId;
  beforeAll(async () => {
    api = await startApi();
    const seeded = await seedApi(api);
    siteId = SiteId.parse(seeded.siteId);
    profileId = ProfileId.parse(seeded.profileId);
  });
  afterAll(() => api.close());

  const ask = (id: NodeId, what: string) => api.ask("POST", `/api/v1/admin/nodes/${id}/${what}`, REASON);
  const verb = (decommission: string, what: string) =>
    api.ask("POST", `/api/v1/admin/decommissions/${decommission}/${what}`, REASON);

  async function node(hostname: string, onboardingMode: "maas" | "manual" = "maas", bound = true): Promise<NodeId> {
    const id = NodeId.parse(randomUUID());
    await api.database.database.inTx(async (tx) => {
      const facts = { sku: "s", gpusTotal: 8, regionCode: "r1", onboardingMode, owner: "onboarding" } as const;
      await createNode(tx, { id, hostname, siteId, ...facts });
      if (onboardingMode === "manual")
        await moveNode(tx, id, { from: "bootstrap_issued", to: "enrolling", owner: "admin_api" }, "enrolled");
      await moveNode(tx, id, { from: "enrolling", to: "active", owner: "onboarding" }, "ready");
      if (!bound) return;
      const onboardingId = WorkflowId.parse(randomUUID());
      const about = { siteId, status: "completed", stage: "wait_for_agent_enrollment", input: {} } as const;
      await tx.insert(workflows).values({ id: onboardingId, kind: "onboard", ...about });
      const host = { nodeId: id, siteId, hostname, ipmiIp: "10.0.0.1", maasSystemId: `id-${hostname}` };
      await tx.insert(nodeOnboardings).values({ onboardingId, profileId, skuId: "s", ...host });
      await tx
        .insert(nodeMaasState)
        .values({ nodeId: id, siteId, maasSystemId: host.maasSystemId, ipmiIp: host.ipmiIp });
    });
    return id;
  }
  const retired = async (...of: Parameters<typeof node>): Promise<NodeId> => {
    const id = await node(...of);
    await api.database.database.inTx((tx) => retireNode(tx, id));
    return id;
  };

  it("begins once for a retired node, is audited, and waits for no agent", async () => {
    const id = await retired("c01u01");
    const begun = await ask(id, "release");
    expect(begun).toMatchObject({ status: 202, body: { node_id: id, mode: "release", status: "pending" } });
    expect(await ask(id, "release")).toMatchObject({ status: 409, problem: { code: "operation_exists" } });
    const { decommission_id: decommission } = begun.body as { decommission_id: string };
    expect((await api.ask("GET", `/api/v1/admin/decommissions/${decommission}`)).body).toMatchObject({
      maas_system_id: "id-c01u01",
      current_stage: "release_maas_node",
    });
    expect(await verb(decommission, "force")).toMatchObject({ status: 409, problem: { code: "verb_not_allowed" } });
    const audited = await doneAudits(api.database.database.db);
    expect(audited.find((row) => row.action === "releaseNode")?.details).toMatchObject({
      prior: { status: "retired" },
      expected: { status: "retired" },
    });
  });

  it("begins once for a machine that a removed node has left deployed, and audits that the node stays deleted", async () => {
    const [left, none] = [await retired("c04u01"), await retired("c04u02", "maas", false)];
    for (const id of [left, none])
      await api.database.database.inTx((tx) => deleteNode(tx, id, randomUUID(), "removed before"));
    const begun = await ask(left, "release");
    expect(begun).toMatchObject({ status: 202, body: { node_id: left, mode: "release", warning: null } });
    const { decommission_id: decommission } = begun.body as { decommission_id: string };
    const read = await api.ask("GET", `/api/v1/admin/decommissions/${decommission}`);
    expect(read.body).toMatchObject({ maas_system_id: "id-c04u01", current_stage: "release_maas_node" });
    expect(await ask(left, "release")).toMatchObject({ status: 409, problem: { code: "operation_exists" } });
    expect((await ask(none, "release")).problem.detail).toContain("no machine in MAAS");
    const audited = await doneAudits(api.database.database.db);
    expect(audited.find((row) => row.target === `nodes/${left}`)?.details).toMatchObject({
      prior: { status: "deleted" },
      expected: { status: "deleted" },
    });
  });

  it("is refused for a node that is not retired or has no machine in MAAS, and nothing is written", async () => {
    const inService = await node("c02u01");
    const manual = await retired("c02u02", "manual", false);
    const unbound = await retired("c02u03", "maas", false);
    const before = await api.counts();
    for (const [id, why] of [
      [inService, "drain it first"],
      [manual, "by hand"],
      [unbound, "no machine in MAAS"],
    ] as const) {
      const refused = await ask(id, "release");
      expect(refused.problem).toMatchObject({ status: 409, code: "conflict" });
      expect(refused.problem.detail).toContain(why);
    }
    expect(await api.counts()).toEqual(before);
  });

  it("is part of a full decommission, which needs a machine and begins from any status in service or retired", async () => {
    const full = (id: NodeId) =>
      api.ask("POST", `/api/v1/admin/nodes/${id}/decommission`, { ...REASON, mode: "full_decommission" });
    const manual = await full(await node("c04u01", "manual", false));
    expect(manual.problem).toMatchObject({ status: 409, code: "conflict" });
    expect(manual.problem.detail).toContain("by hand");
    const begun = await full(await node("c04u02"));
    expect(begun).toMatchObject({ status: 202, body: { mode: "full_decommission", status: "pending" } });
    const { decommission_id: id } = begun.body;
    const audited = await doneAudits(api.database.database.db);
    expect(audited.find((row) => row.target === `nodes/${begun.body.node_id}`)?.details).toMatchObject({
      decommission_id: id,
      options: {
        mode: "full_decommission",
        erase: "secure",
        storage_cleanup: "all",
        remove_maas_record: false,
        force_release_allocation: false,
        agent_wait_seconds: 900,
      },
      expected: { status: "deleted" },
    });
    expect((await verb(id, "cancel")).body).toMatchObject({ status: "cancelled", current_stage: "disable_node" });
    expect(await full(await retired("c04u03"))).toMatchObject({ status: 202 });
  });

  it("prevents activating the node while it runs or after the machine is released, but not after an earlier cancel", async () => {
    const [kept, gone] = [await retired("c03u01"), await retired("c03u02")];
    const begin = async (id: NodeId) => (await ask(id, "release")).body.decommission_id as string;
    const first = await begin(kept);
    expect(await ask(kept, "activate")).toMatchObject({ status: 409, problem: { code: "operation_exists" } });
    expect((await verb(first, "cancel")).body).toMatchObject({ status: "cancelled" });
    expect((await ask(kept, "activate")).body).toMatchObject({ status: "active" });

    const second = await begin(gone);
    await api.database.database.inTx((tx) => recordMachineReleased(tx, WorkflowId.parse(second), 0));
    await verb(second, "cancel");
    const refused = await ask(gone, "activate");
    expect(refused.problem).toMatchObject({ status: 409, code: "conflict" });
    expect(refused.problem.detail).toContain("Remove the node, then onboard the host again");
  });
});
