/**
 * Walks the ways in which a tenant's use of a host can end. However it ends, exactly one sanitization record is the last one of the allocation, and
 * the record says honestly who cleaned the host, and how far.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { recordMachineReleased } from "../../hub/db/queries/decommissions.ts";
import { allocations, nodeHealthOverrides, nodes } from "../../hub/db/schema/index.ts";
import { SecretError } from "../../hub/secrets/port.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import type { SanitizationRecord } from "../../shared/sanitization-record.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { EMPTY_SNAPSHOT, resultOnCleanHost } from "../support/agent-results.ts";
import { setConnected } from "../support/node-in-service.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { UNRECORDED_ALLOCATIONS } from "../support/tenancy-records.ts";
import { Tenancy } from "./tenancy.ts";

let rig: OnboardingRig;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 18 });
});
afterAll(() => rig?.close());
afterEach(async () => {
  expect((await db().execute(sql.raw(UNRECORDED_ALLOCATIONS))).rows).toEqual([]);
});

const db = () => rig.services.db;
const begin = (granted = true): Promise<Tenancy> => {
  boxes += 1;
  return Tenancy.begin(rig, boxes, granted);
};
/** Releases the machine as another MAAS user would. */
function releaseByOther({ host: { machine } }: Tenancy): void {
  const { region } = rig.maas.sim;
  region.setOwner(machine, null);
  region.forceStatus(machine, STATUS.ready);
}
const codes = ({ reasons }: SanitizationRecord) => reasons.map(({ code }) => code);

describe("a turnover", () => {
  it("writes the record of a released tenant", async () => {
    const tenancy = await begin();
    expect(await tenancy.drive(await tenancy.release())).toBe("completed");
    const record = await tenancy.only();
    expect(record).toMatchObject({ verdict: "clean", signed_by_agent: true, operation: { mode: "soft_reset" } });
    expect([record.follows, record.without_turnover]).toEqual([undefined, undefined]);
  });

  it("writes the record of a tenant whose release cancelled a drain", async () => {
    const tenancy = await begin();
    const drain = await tenancy.start({
      mode: "drain",
      reason: "broken",
      force: false,
      deadline_seconds: 60,
      agent_wait_seconds: 0,
      force_release_allocation: true,
    });
    await tenancy.drive(drain, "drain_node");
    await tenancy.release(true);
    expect(await tenancy.drive(drain), await tenancy.driver.story(drain)).toBe("cancelled");
    await tenancy.sweep();
    expect(await tenancy.drive((await tenancy.now()).decommissionId as WorkflowId)).toBe("completed");
    expect(await tenancy.only()).toMatchObject({ verdict: "clean", operation: { mode: "soft_reset" } });
  });

  it("that failed and was repeated names the record of the failed one", async () => {
    const tenancy = await begin();
    const failed = { step: "account", target: "alice", outcome: "failed", message: "busy", evidence: {} };
    const turnover = await tenancy.release();
    await tenancy.drive(turnover, "record_sanitization");
    // The test changes the stored result, so that no stage before the record finds the failed step.
    const spoilt = JSON.stringify({ uid: 30_001, steps: [failed], root_by: [] });
    const [before] = (
      await db().execute<{ id: string; result: unknown }>(
        sql`select id, result from tasks where workflow_id = ${turnover} and type = 'allocation.revoke_user'`,
      )
    ).rows;
    await db().execute(sql`update tasks set result = ${spoilt}::jsonb where id = ${before?.id}`);
    expect(await tenancy.drive(turnover)).toMatch(/^failed/);
    await db().execute(
      sql`update tasks set result = ${JSON.stringify(before?.result)}::jsonb where id = ${before?.id}`,
    );
    await tenancy.driver.verb(turnover, "resume");
    expect(await tenancy.drive(turnover), await tenancy.driver.story(turnover)).toBe("completed");
    const records = await tenancy.records();
    expect(records.map(({ verdict }) => verdict)).toContain("not_clean");
    expect(records.at(-1)).toMatchObject({ verdict: "clean", allocation: { id: tenancy.id } });
    expect(records.slice(1).map(({ follows }) => follows)).toEqual(
      records.slice(0, -1).map(({ record_id }) => record_id),
    );
  });
});

describe("a host that nobody cleaned", () => {
  it("was drained and removed", async () => {
    const tenancy = await begin();
    await tenancy.drain();
    const operation = await tenancy.remove();
    const record = await tenancy.only();
    expect(record).toMatchObject({
      verdict: "not_clean",
      signed_by_agent: false,
      agent: null,
      claims: [],
      operation: { decommission_id: operation, mode: "remove", requested_by: "ann" },
      without_turnover: { because: "node_removed", begun: null },
    });
    expect(codes(record)).toEqual(expect.arrayContaining(["never_cleaned", "residue_missing", "not_signed"]));
    expect(codes(record)).not.toContain("nothing_required");
    expect(record.allocation?.from).not.toBeNull();
  });

  it("was drained, and MAAS released the machine; a later removal adds no record", async () => {
    const tenancy = await begin();
    await tenancy.drain();
    await tenancy.run({ mode: "release", reason: "give back" });
    const record = await tenancy.only();
    expect(record).toMatchObject({
      verdict: "not_clean",
      operation: { mode: "release" },
      without_turnover: { because: "host_released", begun: null },
      release: { maas_system_id: tenancy.host.machine.systemId, erase: "none", evidence: "none" },
    });
    expect(codes(record)).toEqual(expect.arrayContaining(["never_cleaned", "erase_not_asked"]));
    const overrides = await rig.services.db
      .select()
      .from(nodeHealthOverrides)
      .where(eq(nodeHealthOverrides.nodeId, tenancy.nodeId));
    expect(overrides, "the disks still have the tenant's files").toMatchObject([
      { source: "disk-erase", neededErase: "quick", reason: expect.stringContaining("asked for no erase") },
    ]);
    await tenancy.remove();
    await tenancy.only();
  });

  it("was released in MAAS by somebody else, and then drained and removed by force", async () => {
    const tenancy = await begin();
    releaseByOther(tenancy);
    await setConnected(rig, tenancy.nodeId, false);
    const drain = { mode: "drain", reason: "gone", force: true, deadline_seconds: 0, agent_wait_seconds: 0 } as const;
    const id = await tenancy.start({ ...drain, force_release_allocation: true });
    expect(await tenancy.drive(id)).toMatch(/^failed/);
    await tenancy.force(id);
    expect(await tenancy.drive(id)).toBe("completed");
    const remove = await tenancy.start({ mode: "remove", reason: "gone", agent_wait_seconds: 0 });
    expect(await tenancy.drive(remove)).toMatch(/^failed/);
    await tenancy.force(remove);
    expect(await tenancy.drive(remove)).toBe("completed");
    await tenancy.sweep();
    expect(await tenancy.only()).toMatchObject({ without_turnover: { because: "node_removed", begun: null } });
  });

  it("had a tenant whose account the agent perhaps made", async () => {
    const tenancy = await begin(false);
    await tenancy.drain();
    await tenancy.remove();
    expect(await tenancy.only()).toMatchObject({ verdict: "not_clean", allocation: { from: null } });
  });

  it("had a planned end, no agent and no turnover that came to its cleaning", async () => {
    const tenancy = await begin();
    tenancy.isAway = true;
    await setConnected(rig, tenancy.nodeId, false);
    await db().update(allocations).set({ endsAt: sql`now()` }).where(eq(allocations.id, tenancy.id));
    await tenancy.sweep();
    const turnover = (await tenancy.now()).decommissionId as WorkflowId;
    await db().execute(sql`update workflows set input = input || '{"agent_wait_seconds": 0}' where id = ${turnover}`);
    expect(await tenancy.drive(turnover)).toMatch(/^failed/);
    await tenancy.cancel(turnover);
    expect(await tenancy.records()).toEqual([]);
    tenancy.isAway = false;
    await setConnected(rig, tenancy.nodeId, true);
    await tenancy.drain();
    await tenancy.remove();
    expect(await tenancy.only()).toMatchObject({ without_turnover: { begun: null } });
  });

  it("has a record even after the rows of its node and its operations are gone", async () => {
    const tenancy = await begin();
    await tenancy.drain();
    await db().execute(sql`delete from tasks where node_id = ${tenancy.nodeId}`);
    await db().execute(sql`delete from node_decommissions where node_id = ${tenancy.nodeId}`);
    await db().delete(nodes).where(eq(nodes.id, tenancy.nodeId));
    await tenancy.sweep();
    const record = await tenancy.only();
    expect(record).toMatchObject({
      operation: { mode: "unknown" },
      node: { hostname: tenancy.host.hostname, system_id: null },
    });
  });
});

describe("a cancelled cleaning", () => {
  it("writes no record; a reimage that is cancelled before its release leaves the record to the next turnover", async () => {
    const tenancy = await begin();
    await tenancy.cancel(await tenancy.release());
    const reimage = await tenancy.reimage();
    await tenancy.drive(reimage, "release_maas_node");
    await tenancy.cancel(reimage);
    expect(await tenancy.records()).toEqual([]);
    expect((await tenancy.now()).status).toBe("ending");
    const again = await tenancy.reimage();
    expect(await tenancy.drive(again), await tenancy.driver.story(again)).toBe("completed");
    expect(await tenancy.only()).toMatchObject({ operation: { decommission_id: again }, signed_by_agent: true });
  });

  it("after the release of a reimage ends the tenancy as unfinished; a later reimage is no second record of it", async () => {
    const tenancy = await begin();
    await tenancy.cancel(await tenancy.release());
    const reimage = await tenancy.reimage();
    await tenancy.drive(reimage, "power_off_maas_node");
    await tenancy.cancel(reimage);
    const record = await tenancy.only();
    expect(record).toMatchObject({
      trust: "in_place",
      signed_by_agent: false,
      operation: { decommission_id: reimage, mode: "reimage" },
      without_turnover: { because: "host_released", begun: { decommission_id: reimage, mode: "reimage" } },
      release: { generation: 0, erase: "quick" },
    });
    expect(codes(record)).toContain("cleaning_unfinished");
    expect(record.not_covered.join("\n")).toContain(
      "began to clean the host after the tenant's use, and did not finish",
    );
    // The allocation has ended, so the request may ask for no erase.
    const later = await tenancy.start({ mode: "reimage", reason: "next", erase: "none", agent_wait_seconds: 0 });
    expect(await tenancy.drive(later), await tenancy.driver.story(later)).toBe("completed");
    await tenancy.sweep();
    const [first, second, ...others] = await tenancy.records();
    expect(others).toEqual([]);
    expect(first).toEqual(record);
    expect(second).toMatchObject({ sequence: 2, allocation: null, operation: { decommission_id: later } });
    expect(second?.follows).toBeUndefined();
  });

  it("keeps what the cleaning found, if the node is then removed", async () => {
    const tenancy = await begin();
    const door = { entries: [{ name: "/usr/local/bin/door", digest: "AAAAAAAAAAAAAAAA" }] };
    tenancy.resultOf = (task) =>
      task.type === "node.validate_clean"
        ? { boot_id: "boot", snapshot: { ...EMPTY_SNAPSHOT, setuid_files: door } }
        : resultOnCleanHost(task);
    const turnover = await tenancy.release();
    expect(await tenancy.drive(turnover)).toMatch(/^failed/);
    await tenancy.cancel(turnover);
    await tenancy.drain();
    const removal = await tenancy.remove();
    const record = await tenancy.only();
    expect(record).toMatchObject({
      verdict: "not_clean",
      operation: { decommission_id: removal },
      without_turnover: { begun: { decommission_id: turnover, mode: "soft_reset" } },
      residue: { verdict: "found" },
    });
    expect(codes(record)).toEqual(expect.arrayContaining(["cleaning_unfinished", "residue_found"]));
    expect(record.tasks.map(({ type }) => type)).toContain("allocation.revoke_user");
  });
});

describe("a full decommission", () => {
  const taking = {
    mode: "full_decommission",
    reason: "scrap",
    erase: "none",
    storage_cleanup: "all",
    remove_maas_record: false,
    force_release_allocation: true,
    agent_wait_seconds: 0,
  } as const;

  it("writes the record before the release, and the end of the node adds none", async () => {
    const tenancy = await begin();
    await tenancy.run(taking);
    const record = await tenancy.only();
    expect(record).toMatchObject({ operation: { mode: "full_decommission" }, signed_by_agent: true });
    expect(record.without_turnover).toBeUndefined();
  });

  it("that is cancelled after its release leaves its record as the only one", async () => {
    const tenancy = await begin();
    const id = await tenancy.start(taking);
    await tenancy.drive(id, "remove_gpuaas_node_record");
    await tenancy.cancel(id);
    expect(await tenancy.only()).toMatchObject({ operation: { decommission_id: id } });
  });

  it("that finds the tenant's system gone does not end the tenant's use without a record", async () => {
    const tenancy = await begin();
    const first = await tenancy.release();
    await tenancy.cancel(first);
    const id = await tenancy.start(taking);
    await tenancy.drive(id, "revoke_users");
    releaseByOther(tenancy);
    await rig.services.inTx((tx) => recordMachineReleased(tx, first, 0));
    expect(await tenancy.drive(id), await tenancy.driver.story(id)).toBe("completed");
    expect(await tenancy.driver.story(id)).toContain("record_sanitization skipped: The system of the host is gone");
    expect([(await tenancy.now()).status, await tenancy.records()]).toEqual(["ending", []]);
    await tenancy.sweep();
    expect(await tenancy.only()).toMatchObject({ verdict: "not_clean", without_turnover: { begun: null } });
  });

  it("that is cancelled after its record is followed by the record of the turnover", async () => {
    const tenancy = await begin();
    const id = await tenancy.start(taking);
    await tenancy.drive(id, "retire_gpuaas_node");
    await tenancy.cancel(id);
    const turnover = (await tenancy.now()).decommissionId as WorkflowId;
    expect(await tenancy.drive(turnover), await tenancy.driver.story(turnover)).toBe("completed");
    const [first, second, ...others] = await tenancy.records();
    expect(others).toEqual([]);
    expect(first).toMatchObject({ operation: { decommission_id: id } });
    expect(second).toMatchObject({ follows: first?.record_id, allocation: { id: tenancy.id }, verdict: "clean" });
  });
});

it("no tenancy of a lost host ends while the hub cannot sign its record", async () => {
  const tenancy = await begin();
  await tenancy.drain();
  const id = await tenancy.start({ mode: "remove", reason: "scrap", agent_wait_seconds: 0 });
  expect(await tenancy.drive(id)).toBe("completed");
  await tenancy.sweep(() => {
    throw new SecretError("secret_store_unavailable", "muster/key", "the store is away");
  });
  const { status, problem } = await tenancy.now();
  expect([status, problem]).toEqual(["ending", expect.stringContaining("order key")]);
  await Promise.all([tenancy.sweep(), tenancy.sweep()]);
  await tenancy.only();
});
