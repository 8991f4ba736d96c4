/** Repairs of machines: release with a fault, automatic requests and what holds them back, claims, outcomes, the way out, and online repair. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sweepAllocations } from "../../../hub/allocations/sweep.ts";
import { SiteId } from "../../../shared/ids.ts";
import { SSH_KEY } from "../../support/allocatable-node.ts";
import { seedApi } from "../../support/api-harness.ts";
import { countersign } from "../../support/countersign.ts";
import { quietLog } from "../../support/log.ts";
import { ISSUE, RepairWorld } from "../../support/repair-world.ts";

const OTHER_ISSUE = { category: "Network", summary: "rail 2 has no link" };
const ACKNOWLEDGED = {
  accept_data_corruption_risk: true,
  accept_repair_team_access: true,
  accept_instance_deletion_risk: true,
};
const LOGIN = { login_user: "fixer", ssh_keys: [SSH_KEY] };

describe("the repair of machines", () => {
  let world: RepairWorld;
  beforeAll(async () => {
    world = await RepairWorld.start();
  });
  afterAll(() => world?.api.close());

  it("begins with a tenant's fault: a report alone, and a request too at a site that repairs automatically", async () => {
    const one = await world.faulty(world.manual);
    expect(one.repair).toMatchObject({
      ...{ mode: "full", state: "reported", tenant: "acme", attempt: 0, sanitized: "yes", held_back: null },
      ...{ issue: ISSUE, verbs: ["request-repair", "report-repair", "escalate-repair"] },
    });
    expect(await world.marks(one.nodeId)).toEqual(["tenant-reported-issue"]);
    const other = await world.faulty(world.automatic);
    expect(other.repair).toMatchObject({ state: "requested" });
    expect(other.repair.timeline.map(({ entry }: { entry: string }) => entry)).toEqual(["opened", "requested"]);
    expect(await world.marks(other.nodeId)).toEqual(["repair-request", "tenant-reported-issue"]);
    const nodeId = await world.newNode(world.automatic);
    await world.release(await world.allocate(nodeId), {});
    expect([await world.repairOf(nodeId), await world.marks(nodeId)]).toEqual([null, []]);
  });

  it("keeps tenants off, whatever a person makes of the marks", async () => {
    const { nodeId, repair } = await world.faulty(world.manual);
    const overrides = `/nodes/${nodeId}/health-overrides`;
    for (const template of ["TenantReportedIssue", "RequestRepair", "RequestOnlineRepair", "OutForRepair"])
      expect(await world.refused(overrides, { template, message: "x" })).toMatch(
        /^409 conflict: .*belongs to repair .*request-repair/,
      );
    expect(await world.refused(`/nodes/${nodeId}/remove-health-override`, { source: "tenant-reported-issue" })).toMatch(
      /^409/,
    );
    await world.must(overrides, { template: "MarkHealthy" });
    expect((await world.get(`/nodes/${nodeId}`)).body.unschedulable_reasons).toEqual([
      expect.stringContaining(`repair ${repair.id} is reported`),
    ]);
    const listed = await world.get(`/nodes?schedulable=true&hostname=${repair.hostname}`);
    expect(listed.body.items).toEqual([]);
    expect(await world.refused("/allocations", { reason: undefined, node_id: nodeId, tenant: "b", ...LOGIN })).toMatch(
      /^409 node_not_schedulable: .*is reported/,
    );
  });

  it("leads a repair team from the claim to the way out, which needs a cleaning and a validation after the work", async () => {
    const { nodeId, repair } = await world.faulty(world.automatic);
    const { id } = repair;
    const claimed = await world.verb(id, "claim", { access: LOGIN, hours: 2 }, world.team);
    expect(claimed).toMatchObject({ state: "claimed", attempt: 1, claimed_by: "fixers", repair_tenant: "fixers" });
    expect((await world.get(`/repairs/${id}`, world.otherTeam)).status).toBe(404);
    expect(await world.refused(`/repairs/${id}/report`, { outcome: "completed" }, world.otherTeam)).toMatch(/^404/);
    const extended = await world.verb(id, "claim", { hours: 9 }, world.team);
    expect(extended.attempt).toBe(1);
    expect(Date.parse(extended.claim_until)).toBeGreaterThan(Date.parse(claimed.claim_until));
    expect(await world.refused(`/repairs/${id}/close`)).toMatch(/^409 verb_not_allowed/);
    const done = await world.verb(id, "report", { outcome: "completed" }, world.team);
    expect(done).toMatchObject({ state: "repaired", outcome: "completed" });
    expect(await world.marks(nodeId)).toEqual(["tenant-reported-issue"]);
    expect((await world.get(`/allocations/${claimed.access_allocation_id}`)).body.status).toBe("ending");
    const codes = async () => (await world.repairOf(nodeId)).failed_checks.map(({ code }: { code: string }) => code);
    expect(await codes()).toEqual(["held_by_operation", "in_use", "not_cleaned", "not_validated"]);
    expect(await world.refused(`/repairs/${id}/close`)).toMatch(/not_cleaned.*decommission-node/);
    await world.verb(id, "validate", { result: "passed" });
    expect(await codes()).toEqual(["held_by_operation", "in_use", "not_cleaned"]);
    await world.endCleaning(nodeId, "incomplete");
    expect(await codes()).toEqual(["not_clean", "validated_before_cleaning"]);
    await world.must(`/nodes/${nodeId}/decommission`, { mode: "soft_reset" });
    await world.endCleaning(nodeId);
    expect(await codes()).toEqual(["validated_before_cleaning"]);
    expect(await world.refused(`/repairs/${id}/validate`, { result: "passed" }, world.team)).toMatch(/^403/);
    await world.verb(id, "validate", { result: "passed" });
    const closed = await world.verb(id, "close");
    expect(closed).toMatchObject({ state: "closed", verbs: [], ended_at: expect.any(String) });
    expect([await world.marks(nodeId), (await world.get(`/nodes/${nodeId}`)).body.unschedulable_reasons]).toEqual([
      [],
      [],
    ]);
    const types = await world.query("select type from domain_events where subject = $1 order by seq", [
      `repairs/${id}`,
    ]);
    expect(types.map(({ type }) => type)).toEqual([
      ...["repair.opened", "repair.requested", "repair.claimed", "repair.changed", "repair.changed", "repair.repaired"],
      ...["repair.changed", "repair.changed", "repair.closed"],
    ]);
    expect(await world.refused(`/repairs/${id}/escalate`)).toMatch(/takes no further change/);
  });

  it("fails closed: only a reported success counts, and a repair never asks for the next one", async () => {
    const say = async (said: object) => {
      const { nodeId, repair } = await world.faulty(world.automatic, { ...ISSUE, summary: `fault ${world.named}` });
      const { access_allocation_id } = await world.verb(repair.id, "claim", { access: LOGIN }, world.team);
      await world.release(access_allocation_id, said);
      const { state, outcome, finding, issue } = await world.repairOf(nodeId);
      return { marks: await world.marks(nodeId), state, outcome, finding, fault: issue.summary };
    };
    const failed = { marks: ["tenant-reported-issue"], state: "failed" };
    const told = (status: string) =>
      expect.stringContaining(
        `RepairSystem processing incomplete: Machine released by repair tenant but repair status is: ${status}`,
      );
    expect(await say({})).toMatchObject({ ...failed, outcome: "unknown", finding: told("Unknown") });
    expect(await say({ is_repair_tenant: true, repair_status: "done" })).toMatchObject({
      ...failed,
      outcome: "unknown",
      finding: told("done"),
    });
    expect(await say({ repair_status: "InProgress" })).toMatchObject({ ...failed, outcome: "in_progress" });
    expect(await say({ repair_status: "failed" })).toMatchObject({ ...failed, outcome: "failed" });
    expect(await say({ repair_status: "completed", machine_health_issue: OTHER_ISSUE })).toMatchObject({
      ...{ ...failed, outcome: "completed", finding: null, fault: OTHER_ISSUE.summary },
    });
    expect(await say({ repair_status: "COMPLETED" })).toMatchObject({ ...failed, state: "repaired", finding: null });
    const nodeId = await world.newNode();
    const allocation = await world.allocate(nodeId);
    for (const said of [{ is_repair_tenant: true }, { repair_status: "Completed" }])
      expect(await world.refused(`/allocations/${allocation}/release`, said)).toMatch(
        /^409 conflict: .*not the access of a claimed repair/,
      );
  });

  it("ends an attempt that nobody reports, and a case whose node is gone", async () => {
    const [lapsed, lost, gone] = [
      await world.faulty(world.automatic),
      await world.faulty(world.automatic, OTHER_ISSUE),
      await world.faulty(world.manual),
    ];
    await world.verb(lapsed.repair.id, "claim", { access: LOGIN }, world.team);
    const { access_allocation_id } = await world.verb(lost.repair.id, "claim", { access: LOGIN }, world.team);
    await world.must(`/allocations/${access_allocation_id}/force-release`);
    await world.query("update nodes set status = 'deleted' where id = $1", [gone.nodeId]);
    expect(await world.sweep()).toBe(2);
    expect(await world.repairOf(lapsed.nodeId)).toMatchObject({ state: "claimed" });
    await world.query("update repair_cases set claim_until = now() where id = $1", [lapsed.repair.id]);
    expect(await world.sweep()).toBe(1);
    expect(await world.sweep()).toBe(0);
    for (const { nodeId } of [lapsed, lost]) {
      expect(await world.repairOf(nodeId)).toMatchObject({ state: "failed", outcome: "unknown", claim_until: null });
      expect(await world.marks(nodeId)).toEqual(["tenant-reported-issue"]);
    }
    expect((await world.get(`/repairs?hostname=${lapsed.repair.hostname}&open=true`)).body.items).toHaveLength(1);
    expect(await world.repairOf(gone.nodeId)).toMatchObject({ state: "abandoned" });
    expect(
      await world.query("select source from node_health_overrides where node_id = $1", [gone.nodeId]),
    ).toHaveLength(1);
  });

  it("takes no machine round in a loop: new evidence for each attempt, and a limit of attempts", async () => {
    const { nodeId, repair } = await world.faulty(world.automatic);
    const { id } = repair;
    const attempt = async () => {
      await world.verb(id, "claim", {}, world.team);
      return world.verb(id, "report", { outcome: "failed" }, world.team);
    };
    expect(await attempt()).toMatchObject({ state: "failed", attempt: 1 });
    expect(await world.refused(`/repairs/${id}/request`)).toMatch(
      /^409 conflict: .*claimed for repair 1 times.*new evidence/,
    );
    expect(await world.refused(`/repairs/${id}/request`, { evidence: "gpu 3 FELL off the bus; XID 79 twice" })).toMatch(
      /new evidence/,
    );
    await world.verb(id, "request", { evidence: "the riser was swapped, and GPU 3 fell off again" });
    await world.verb(id, "withdraw");
    await world.verb(id, "request", { evidence: "the riser was swapped, and GPU 3 fell off again" });
    await attempt();
    await world.verb(id, "request", { evidence: "with another GPU it works" });
    await world.repairAndClose(nodeId, id);
    await world.release(await world.allocate(nodeId), { machine_health_issue: { ...ISSUE, details: "again" } });
    const again = await world.repairOf(nodeId);
    expect(again).toMatchObject({ state: "reported", held_back: "attempts_spent" });
    const held = { entry: "held_back", message: expect.stringContaining("all its attempts") };
    expect(again.timeline.at(-1)).toMatchObject(held);
    expect(await world.refused(`/repairs/${again.id}/request`, { evidence: "anything" })).toMatch(
      /limit of its site is 3.*repair_attempt_limit/,
    );
    await world.changeSite(world.automatic, { repair_attempt_limit: 4 });
    expect(await world.verb(again.id, "request", { evidence: "anything" })).toMatchObject({
      state: "requested",
      held_back: null,
    });
    await world.changeSite(world.automatic, { repair_attempt_limit: 3 });
  });

  it("gives a repair team no account on a host that another cause bars, for example disks that were not erased", async () => {
    const { nodeId, repair } = await world.faulty(world.automatic, OTHER_ISSUE);
    const claim = `/repairs/${repair.id}/claim`;
    for (const source of ["disk-erase", "restore", "evidence"]) {
      const bar = "insert into node_health_overrides (node_id, source, reason, set_by) values ($1, $2, 'why', 'x')";
      await world.query(bar, [nodeId, source]);
      expect(await world.refused(claim, { access: LOGIN }, world.team)).toMatch(
        new RegExp(`^409 node_not_schedulable: .*health override ${source}`),
      );
      await world.query("delete from node_health_overrides where node_id = $1 and source = $2", [nodeId, source]);
    }
    await world.must(claim, { access: LOGIN }, world.team);
  });

  it("takes no machine from its tenant, and a full timeline refuses neither the release nor the end of an attempt", async () => {
    const nodeId = await world.newNode(world.automatic);
    const allocation = await world.allocate(nodeId);
    const wanted = { node_id: nodeId, machine_health_issue: OTHER_ISSUE };
    const taken = /^409 conflict: .*allocated to acme.*Release.*open-online-repair/;
    expect(await world.refused("/repairs", { ...wanted, request: true })).toMatch(taken);
    const { id } = await world.must("/repairs", wanted);
    expect(await world.refused(`/repairs/${id}/request`)).toMatch(taken);
    await world.query("update repair_cases set state = 'requested' where id = $1", [id]);
    expect(await world.refused(`/repairs/${id}/claim`, {}, world.team)).toMatch(taken);
    await world.fillTimeline(id);
    const secret = { ...OTHER_ISSUE, summary: "no link, password=hunter2", details: "api_key=hunter2" };
    await world.release(allocation, { machine_health_issue: secret });
    expect((await world.verb(id, "claim", { hours: 168 }, world.team)).issue.summary).toMatch(/^no link, password=/);
    expect(await world.refused(`/repairs/${id}/claim`, {}, world.team)).toMatch(/^409 conflict: .*500 entries/);
    await world.query("delete from repair_events where repair_id = $1 and type = 'claim_extended'", [id]);
    const past = "update repair_events set occurred_at = now() - interval '8 days' where repair_id = $1";
    await world.query(past, [id]);
    expect(await world.refused(`/repairs/${id}/claim`, { hours: 168 }, world.team)).toMatch(/14 days after its claim/);
    await world.verb(id, "claim", { hours: 24 }, world.team);
    await world.fillTimeline(id);
    const report = { outcome: "failed", reason: "token=hunter2", machine_health_issue: secret };
    expect(await world.verb(id, "report", report, world.team)).toMatchObject({ state: "failed" });
    const stored = [await world.repairOf(nodeId)];
    for (const table of ["domain_events", "node_events", "node_health_overrides"])
      stored.push(await world.query(`select * from ${table} t where t::text like '%' || $1 || '%'`, [id]));
    expect(stored.every((one) => Object.keys(one).length > 0)).toBe(true);
    expect(JSON.stringify(stored, (_, one) => (typeof one === "bigint" ? 0 : one))).not.toContain("hunter2");
  });

  it("leaves a person's mark out-for-repair alone, and ends the one of an earlier case", async () => {
    for (const [setBy, left] of [
      [null, ["out-for-repair", "tenant-reported-issue"]],
      ["repair:before", ["tenant-reported-issue"]],
    ] as const) {
      const nodeId = await world.newNode();
      await world.must(`/nodes/${nodeId}/health-overrides`, { template: "OutForRepair", message: "the rack is moved" });
      const read = "select alerts, set_by from node_health_overrides where node_id = $1 and source = 'out-for-repair'";
      const set = await world.query(read, [nodeId]);
      const own = "update node_health_overrides set set_by = coalesce($2, set_by) where node_id = $1";
      await world.query(own, [nodeId, setBy]);
      const { id } = await world.must("/repairs", { node_id: nodeId, machine_health_issue: ISSUE });
      await world.verb(id, "escalate");
      if (setBy === null) expect(await world.query(read, [nodeId])).toEqual(set);
      await world.verb(id, "report", { outcome: "completed" });
      expect(await world.marks(nodeId)).toEqual(left);
    }
  });

  it("holds the automatic report of a known fault back after an attempt", async () => {
    const { nodeId, repair } = await world.faulty(world.automatic);
    await world.repairAndClose(nodeId, repair.id);
    await world.release(await world.allocate(nodeId), { machine_health_issue: ISSUE });
    expect(await world.repairOf(nodeId)).toMatchObject({ state: "reported", held_back: "no_new_evidence", attempt: 0 });
  });

  it("escalates, is repaired by hand, and counts as not repaired after a failed validation", async () => {
    const nodeId = await world.newNode();
    const { id } = await world.must("/repairs", { node_id: nodeId, machine_health_issue: ISSUE, request: true });
    expect(await world.refused("/repairs", { node_id: nodeId, machine_health_issue: ISSUE })).toMatch(
      /^409 conflict: .*open full repair/,
    );
    await world.verb(id, "claim", { access: { ...LOGIN, tenant: "hands" } });
    await world.verb(id, "escalate");
    expect(await world.marks(nodeId)).toEqual(["out-for-repair", "tenant-reported-issue"]);
    expect(await world.repairOf(nodeId)).toMatchObject({ state: "escalated", outcome: "manual", sanitized: "unknown" });
    expect(await world.refused(`/repairs/${id}/report`, { outcome: "failed" })).toMatch(/^409 verb_not_allowed/);
    await world.verb(id, "report", { outcome: "completed" });
    expect(await world.verb(id, "validate", { result: "failed" })).toMatchObject({ state: "failed" });
    expect(await world.marks(nodeId)).toEqual(["tenant-reported-issue"]);
    const [{ actions }] = await world.query(
      "select array_agg(action order by id) as actions from audit_logs where target = $1 and outcome = 'done'",
      [`repairs/${id}`],
    );
    expect(actions).toEqual(["openRepair", "claimRepair", "escalateRepair", "reportRepair", "validateRepair"]);
  });

  it("repairs a machine with its tenant on it, who acknowledges the risks and cannot release it meanwhile", async () => {
    const nodeId = await world.newNode(world.automatic);
    const allocation = await world.allocate(nodeId);
    const wanted = { allocation_id: allocation, machine_health_issue: ISSUE, acknowledgements: ACKNOWLEDGED };
    const without = { ...ACKNOWLEDGED, accept_repair_team_access: false };
    expect(await world.refused("/online-repairs", { ...wanted, acknowledgements: without })).toMatch(/^400/);
    const { id } = await world.must("/online-repairs", wanted);
    expect(await world.marks(nodeId)).toEqual(["request-online-repair"]);
    expect(await world.refused("/online-repairs", wanted)).toMatch(/^409 conflict: .*open online repair/);
    expect(await world.refused("/repairs", { node_id: nodeId, machine_health_issue: ISSUE })).toMatch(
      /^409 conflict: .*open online repair/,
    );
    const faultyRelease = () => world.refused(`/allocations/${allocation}/release`, { machine_health_issue: ISSUE });
    expect(await faultyRelease()).toMatch(/^409 conflict: .*open online repair/);
    await world.must(`/nodes/${nodeId}/health-overrides`, { template: "MarkHealthy" });
    await world.query("update allocations set ends_at = now() where id = $1", [allocation]);
    await sweepAllocations({ ...world.api.database.database, log: quietLog, countersign });
    expect((await world.get(`/allocations/${allocation}`)).body.status, "after its planned end").toBe("active");
    await world.query("update allocations set ends_at = null where id = $1", [allocation]);
    expect(await faultyRelease()).toMatch(/^409 conflict: .*open online repair/);
    expect(await world.refused(`/repairs/${id}/claim`, { access: LOGIN }, world.team)).toMatch(
      /^409 conflict: .*online repair/,
    );
    await world.verb(id, "claim", {}, world.team);
    await world.verb(id, "report", { outcome: "completed" }, world.team);
    expect(await world.refused(`/repairs/${id}/close`)).toMatch(/not_validated/);
    await world.verb(id, "validate", { result: "passed" });
    expect(await world.verb(id, "close")).toMatchObject({ state: "closed" });
    expect(await world.marks(nodeId)).toEqual(["mark-healthy"]);
    await world.release(allocation, { machine_health_issue: OTHER_ISSUE });
    expect(await world.refused("/online-repairs", wanted)).toMatch(/^409 conflict: .*only an active tenant/);
  });

  it("becomes a full repair of the same case when an online repair fails and the tenant gives the machine up", async () => {
    const online = async (more: object) => {
      const nodeId = await world.newNode(world.automatic);
      const allocation = await world.allocate(nodeId);
      const issue = { ...ISSUE, summary: `online fault ${world.named}` };
      const wanted = {
        allocation_id: allocation,
        machine_health_issue: issue,
        acknowledgements: ACKNOWLEDGED,
        ...more,
      };
      const { id } = await world.must("/online-repairs", wanted);
      await world.verb(id, "claim", {}, world.team);
      return { nodeId, allocation, id, failed: await world.verb(id, "report", { outcome: "failed" }, world.team) };
    };
    const kept = await online({});
    expect(kept.failed).toMatchObject({ mode: "online", state: "failed" });
    expect(await world.marks(kept.nodeId)).toEqual(["tenant-reported-issue"]);
    await world.release(kept.allocation, { machine_health_issue: OTHER_ISSUE });
    const full = { id: kept.id, mode: "full", state: "requested", attempt: 1 };
    expect(await world.repairOf(kept.nodeId)).toMatchObject(full);
    const givenUp = await online({ release_on_failure: true });
    expect(givenUp.failed).toMatchObject({ mode: "full", state: "reported", held_back: "no_new_evidence" });
    expect((await world.get(`/allocations/${givenUp.allocation}`)).body.status).toBe("ending");
    const forced = await world.newNode(world.automatic);
    const allocation = await world.allocate(forced);
    const wanted = { allocation_id: allocation, machine_health_issue: ISSUE, acknowledgements: ACKNOWLEDGED };
    await world.must("/online-repairs", wanted);
    await world.must(`/allocations/${allocation}/force-release`);
    await world.sweep();
    expect(await world.repairOf(forced)).toMatchObject({ mode: "full", state: "reported", outcome: "unknown" });
    expect(await world.marks(forced)).toEqual(["tenant-reported-issue"]);
  });

  it("asks for no repair by itself while too many machines of a site are in repair", async () => {
    const { siteId } = await seedApi(world.api, "storm");
    const storm = SiteId.parse(siteId);
    await world.changeSite(storm, { auto_repair: true });
    const states: string[] = [];
    for (let number = 0; number < 7; number += 1) {
      const { repair } = await world.faulty(storm, { ...ISSUE, summary: `storm ${number}` });
      states.push(repair.held_back ?? repair.state);
    }
    expect(states).toEqual([...Array(5).fill("requested"), "breaker", "breaker"]);
    const { body } = await world.get(`/reconciliation/breakers`);
    expect(body.items.find((one: { site_id: string }) => one.site_id === storm)).toMatchObject({
      ...{ kind: "repair", state: "open", would_move: 1, moved: 5, move_limit: 5 },
    });
    const tripped = await world.query(
      "select data from domain_events where type = 'site.breaker.tripped' and subject = $1",
      [`maas-sites/${storm}`],
    );
    expect(tripped).toMatchObject([{ data: { kind: "repair", message: expect.stringContaining("common cause") } }]);
    const held = (await world.get(`/repairs?site_id=${storm}&state=reported`)).body.items;
    expect(held).toHaveLength(2);
    expect(await world.verb(held[0].id, "request")).toMatchObject({ state: "requested" });
    await world.must(`/reconciliation/breakers/${storm}/reset`, { kind: "repair", accept_drift: true });
    expect((await world.faulty(storm, { ...ISSUE, summary: "after the reset" })).repair).toMatchObject({
      state: "requested",
    });
  });

  it("shows a repair system the requested machines of its sites and its own, and lets it read nothing else", async () => {
    const { body } = await world.get(`/repairs?limit=200`, world.otherTeam);
    expect(body.items.length).toBeGreaterThan(0);
    expect(new Set(body.items.map(({ state }: { state: string }) => state))).toEqual(new Set(["requested"]));
    const [{ id }] = body.items;
    await world.verb(id, "claim", {}, world.otherTeam);
    expect((await world.get(`/repairs/${id}`, world.otherTeam)).status).toBe(200);
    expect(await world.refused(`/repairs/${id}/claim`, {}, world.team)).toMatch(/^404/);
    expect(await world.refused(`/repairs/${id}/claim`)).toMatch(/^409 conflict: .*claimed by others/);
    expect(await world.refused(`/repairs/${id}/close`, {}, world.otherTeam)).toMatch(/^403/);
  });
});
