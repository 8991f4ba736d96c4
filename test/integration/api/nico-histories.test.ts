/** The histories of NICo about instances and repairs that Muster must not repeat, each by its number; those of provisioning are in external-provisioning.test.ts. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sweepRepairs } from "../../../hub/repair/sweep.ts";
import { quietLog } from "../../support/log.ts";
import { RepairWorld } from "../../support/repair-world.ts";

const NICO = "/v2/org/acme/nico";
let world: RepairWorld;
beforeAll(async () => {
  world = await RepairWorld.start({ nicoOrg: "acme" });
});
afterAll(() => world?.api.close());

const machine = async (nodeId: string) => (await world.api.ask("GET", `${NICO}/machine/${nodeId}`)).body;
const instance = async (id: string) => (await world.api.ask("GET", `${NICO}/instance/${id}`)).body;
const failOperationOf = (nodeId: string) =>
  world.query(
    `update workflows set status = 'failed_manual_intervention', failure_class = 'agent_unreachable', failure_code = 'agent_absent',
       failure_message = 'The agent did not connect' where id = (select decommission_id from node_decommissions where node_id = $1 order by created_at desc limit 1)`,
    [nodeId],
  );

describe("NICo #2969: an instance that stays Terminating, and the repair status of an earlier attempt", () => {
  it("says that its cleaning failed and what comes next, and ends when the cleaning is done", async () => {
    const nodeId = await world.newNode();
    const id = await world.allocate(nodeId);
    expect((await world.api.ask("DELETE", `${NICO}/instance/${id}`)).status).toBe(202);
    expect(await instance(id)).toMatchObject({ status: "Terminating" });
    await failOperationOf(nodeId);
    const stuck = (await world.get(`/allocations/${id}`)).body;
    expect(stuck).toMatchObject({ status: "ending", next_action: expect.stringMatching(/\w{4,}/) });
    expect(await instance(id)).toMatchObject({ status: "Error" });
    expect(await machine(nodeId)).toMatchObject({ isUsableByTenant: false });
    await world.endCleaning(nodeId);
    expect((await world.api.ask("GET", `${NICO}/instance/${id}`)).status).toBe(404);
    expect(await machine(nodeId)).toMatchObject({ status: "Ready", isUsableByTenant: true, instanceId: null });
  });

  it("counts no report of an earlier attempt for the next one, and requests no repair again without new evidence", async () => {
    const { nodeId, repair } = await world.faulty(world.automatic);
    await world.verb(repair.id, "claim", {}, world.team);
    await world.verb(repair.id, "report", { outcome: "completed" }, world.team);
    await world.must(`/nodes/${nodeId}/decommission`, { mode: "soft_reset" });
    await world.endCleaning(nodeId);
    await world.verb(repair.id, "validate", { result: "failed" });
    expect(await world.repairOf(nodeId)).toMatchObject({ state: "failed", attempt: 1 });
    expect(await world.refused(`/repairs/${repair.id}/request`)).toMatch(/^409 .*evidence/);
    await world.verb(repair.id, "request", { evidence: "the burn-in test fails again" });
    await world.verb(repair.id, "claim", {}, world.otherTeam);
    expect(await world.repairOf(nodeId)).toMatchObject({ state: "claimed", attempt: 2, outcome: null });
    await world.query("update repair_cases set claim_until = now() where id = $1", [repair.id]);
    await sweepRepairs({ ...world.api.database.database, log: quietLog });
    expect(await world.repairOf(nodeId)).toMatchObject({ state: "failed", attempt: 2, outcome: "unknown" });
    expect(await machine(nodeId)).toMatchObject({ isUsableByTenant: false });
  });
});

describe("NICo #5938: a machine whose instance nobody reaches, and which counts as usable for days", () => {
  it("is never usable while it is away, is released by the API alone, and comes back only after its cleaning", async () => {
    const nodeId = await world.newNode();
    const id = await world.allocate(nodeId);
    expect(await machine(nodeId)).toMatchObject({ status: "InUse", isUsableByTenant: true, instanceId: id });
    await world.query("update agent_sessions set state = 'closed' where node_id = $1", [nodeId]);
    await world.query("update nodes set status = 'offline' where id = $1", [nodeId]);
    expect(await machine(nodeId)).toMatchObject({ status: "Error", isUsableByTenant: false, instanceId: id });
    expect((await world.api.ask("DELETE", `${NICO}/instance/${id}`)).status).toBe(202);
    await failOperationOf(nodeId);
    // The instance stays visible with its machine until the host is clean, so that nobody loses sight of it.
    expect(await machine(nodeId)).toMatchObject({ isUsableByTenant: false, instanceId: id });
    expect((await world.get(`/nodes/${nodeId}`)).body).toMatchObject({ schedulable: false });
    const free = await world.get(`/nodes?schedulable=true&hostname=${(await machine(nodeId)).hostname}`);
    expect(free.body.items).toEqual([]);
    await world.endCleaning(nodeId);
    expect(await machine(nodeId)).toMatchObject({ status: "Ready", isUsableByTenant: true, instanceId: null });
  });
});
