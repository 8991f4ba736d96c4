/** The histories of NICo that external provisioning must not repeat, each by its number, and the rules of an attempt. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { externalAttempts, nodeConditions } from "../../../hub/db/schema/index.ts";
import { sweepAttempts } from "../../../hub/node/external/attempt-sweep.ts";
import { applyParked } from "../../../hub/node/parked-signals.ts";
import { SiteId } from "../../../shared/ids.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { quietLog } from "../../support/log.ts";

const ATTEMPTS = "/api/v1/admin/external-attempts";
const NODES = "/api/v1/admin/nodes";

let api: ApiHarness;
let siteId: SiteId;
let skuId: string;
let profileId: string;
let foreman: Record<string, string>;

beforeAll(async () => {
  api = await startApi();
  const seeded = await seedApi(api);
  siteId = SiteId.parse(seeded.siteId);
  skuId = seeded.skuId;
  const groups = [{ any: [{ type: "ssh.reachable" }, { type: "phone.home" }] }];
  const profile = { name: "byo", readiness_policy: groups };
  profileId = (await make(`/api/v1/admin/maas-sites/${siteId}/profiles`, profile, 201)).id;
  foreman = await newToken("foreman");
});
afterAll(() => api.close());

async function make(path: string, body: object, status: number, headers = {}) {
  const answer = await api.ask("POST", path, body, headers);
  expect(answer.status, JSON.stringify(answer.problem)).toBe(status);
  return answer.body;
}
async function newToken(name: string) {
  const { token } = await make(
    "/api/v1/admin/tokens",
    { name, role: "provisioner", expires_in_days: 1, site_ids: [siteId] },
    201,
  );
  return { authorization: `Bearer ${token}` };
}
const newHost = (more: object = {}) => ({
  hostname: `h-${randomUUID().slice(0, 8)}`,
  site_id: siteId,
  sku_id: skuId,
  region_code: "r1",
  provisioner: "foreman",
  profile_id: profileId,
  agent: "none",
  ...more,
});
const begin = async (host = newHost()) => ({ host, ...(await make(ATTEMPTS, host, 201, foreman)) });
const report = (id: string, verb: string, body: object = {}, status = 202) =>
  make(`${ATTEMPTS}/${id}/${verb}`, body, status, foreman);
const attemptOf = async (id: string) => (await api.ask("GET", `${ATTEMPTS}/${id}`)).body;
const nodeOf = async (id: string) => (await api.ask("GET", `${NODES}/${id}`)).body;
const sweep = () => sweepAttempts({ ...api.database.database, log: quietLog });
const signal = (nodeId: string, generation: number, type = "ssh.reachable", status = "True") =>
  make(
    `${NODES}/${nodeId}/readiness-signals`,
    {
      signal_id: randomUUID(),
      generation,
      conditions: [{ type, status, reason: "Seen", message: "m", observed_at: "2026-01-01T00:00:00Z" }],
    },
    202,
  );
const pass = (id: string, column: "lease_expires_at" | "deadline_at") =>
  api.database.database.db
    .update(externalAttempts)
    .set(column === "deadline_at" ? { deadlineAt: sql`now()` } : { leaseExpiresAt: sql`now()` })
    .where(eq(externalAttempts.id, id as never));

describe("NICo #1865: a host whose network and boot nobody at Muster saw", () => {
  it("is in service by the signals that its policy asks for, and needs no observed boot", async () => {
    const { attempt } = await begin();
    expect(attempt).toMatchObject({ status: "begun", provisioned_by: "external", network_owned_by: "operator" });
    await report(attempt.id, "progress", { step: "imaging", percent: 40 });
    await report(attempt.id, "complete", { facts: { host: "10.1.2.3", os: { name: "ubuntu", version: "24.04" } } });
    expect(await attemptOf(attempt.id)).toMatchObject({
      status: "verifying",
      waiting_for: [expect.stringMatching(/^ssh.reachable was never/), expect.stringMatching(/^phone.home was/)],
    });
    await signal(attempt.node_id, attempt.generation);
    expect(await attemptOf(attempt.id)).toMatchObject({ status: "completed", waiting_for: [], next_action: null });
    const node = await nodeOf(attempt.node_id);
    expect(node).toMatchObject({ status: "active", host: "10.1.2.3", onboarding_mode: "external", runs_agent: false });
    expect(node.readiness).toMatchObject({ ready: true, lacking: [] });
    // Nothing could clean the host after a tenant of Muster, so it takes none.
    expect(node.unschedulable_reasons).toEqual([expect.stringMatching(/runs no agent/)]);
  });

  it("is never ready by a constant: without a policy it needs a word about the host", async () => {
    const { attempt } = await begin(newHost({ profile_id: null }));
    await report(attempt.id, "complete");
    await sweep();
    const { status, waiting_for } = await attemptOf(attempt.id);
    expect([status, waiting_for]).toEqual(["verifying", [expect.stringMatching(/^host.ready was never reported/)]]);
    await signal(attempt.node_id, attempt.generation, "host.ready");
    expect((await attemptOf(attempt.id)).status).toBe("completed");
  });

  it("obeys who owns its network, whoever provisions it", async () => {
    for (const [owner, type] of [
      ["operator", "network.ready"],
      ["muster", "network.roce"],
    ] as const) {
      const { attempt } = await begin(newHost({ network_owned_by: owner }));
      await api.database.database.db.insert(nodeConditions).values(
        (["network.ready", "network.roce"] as const).map((one) => ({
          nodeId: attempt.node_id,
          type: one,
          status: "False" as const,
          reason: "Down",
          message: "",
          generation: attempt.generation,
          source: "hub" as const,
          observedAt: sql`now()`,
        })),
      );
      const lacking = (await nodeOf(attempt.node_id)).readiness.lacking.map((one: { type: string }) => one.type);
      expect(lacking.filter((one: string) => one.startsWith("network."))).toEqual([type]);
    }
  });

  it("with the agent waits for the agent, and gets its command", async () => {
    const { attempt, bootstrap_command } = await begin(newHost({ agent: "muster", profile_id: null }));
    expect(bootstrap_command).toMatch(/curl/);
    await report(attempt.id, "complete");
    expect((await attemptOf(attempt.id)).waiting_for).toEqual([
      expect.stringMatching(/^agent.connected/),
      expect.stringMatching(/^agent.healthy/),
      expect.stringMatching(/^os.booted/),
      expect.stringMatching(/^hardware.sku/),
    ]);
    // A new command does not begin a new generation, so signals of the attempt go on counting.
    const again = await make(`${NODES}/${attempt.node_id}/bootstrap-command`, {}, 201);
    expect(again.bootstrap_command).not.toBe(bootstrap_command);
    expect((await nodeOf(attempt.node_id)).generation).toBe(attempt.generation);
  });
});

describe("NICo #5100: Ready a few seconds after a restart was ordered", () => {
  it("does not come from signals of before the provisioning, or before the completion", async () => {
    const { host, attempt: first } = await begin();
    await report(first.id, "complete");
    await signal(first.node_id, first.generation);
    expect((await attemptOf(first.id)).status).toBe("completed");
    const { attempt: second } = await begin(host);
    expect(second).toMatchObject({ number: 2, node_id: first.node_id });
    expect(second.generation).toBeGreaterThan(first.generation);
    expect((await nodeOf(first.node_id)).status).toBe("enrolling");
    // The old system still answers while the host is provisioned again.
    await signal(second.node_id, first.generation);
    await sweep();
    expect((await nodeOf(second.node_id)).status).toBe("enrolling");
    await signal(second.node_id, second.generation);
    await sweep();
    expect((await attemptOf(second.id)).status).toBe("begun");
    await report(second.id, "complete");
    expect((await attemptOf(second.id)).status).toBe("completed");
  });
});

describe("a signal without a generation", () => {
  const SIGNALS = "/api/v1/readiness/signals";
  const say = async (hostname: string) => {
    const observed_at = new Date(Date.now() + 60_000).toISOString();
    const conditions = [{ type: "ssh.reachable", status: "True", reason: "Seen", message: "m", observed_at }];
    const one = { signal_id: randomUUID(), node: { hostname }, conditions };
    return (await make(SIGNALS, one, 202)).results[0];
  };

  it("counts only after the completion, because the host's former system may still answer before", async () => {
    const { host, attempt } = await begin();
    expect(await say(host.hostname)).toMatchObject({
      outcome: "stale",
      detail: expect.stringMatching(/former system, because attempt 1 .* is not completed; name generation 1/),
    });
    await pass(attempt.id, "lease_expires_at");
    await sweep();
    expect(await say(host.hostname)).toMatchObject({ outcome: "stale" });
    await report(attempt.id, "complete");
    expect((await attemptOf(attempt.id)).status).toBe("verifying");
    expect(await say(host.hostname)).toMatchObject({ outcome: "applied" });
    expect((await attemptOf(attempt.id)).status).toBe("completed");
  });

  it("that waited for the node counts only for a host that was adopted as it is", async () => {
    const [host, running] = [newHost(), newHost()];
    for (const { hostname } of [host, running]) expect((await say(hostname)).outcome).toBe("parked");
    const { attempt } = await begin(host);
    await report(attempt.id, "complete");
    const adopted = await make(`${ATTEMPTS}/adopt`, { ...running, facts: {} }, 201, foreman);
    await applyParked(api.database.database.inTx);
    expect((await attemptOf(attempt.id)).status).toBe("verifying");
    expect((await attemptOf(adopted.attempt.id)).status).toBe("completed");
  });
});

describe("NICo #5951: stuck for ever where no reboot can be observed", () => {
  it("ends in failed_retryable with what is lacking, and still completes when that comes late", async () => {
    const { attempt } = await begin();
    await report(attempt.id, "complete");
    await pass(attempt.id, "deadline_at");
    await sweep();
    expect(await attemptOf(attempt.id)).toMatchObject({
      status: "failed_retryable",
      failure_code: "not_ready_in_time",
      reason: expect.stringMatching(/It lacks: ssh.reachable was never reported/),
      next_action: expect.stringMatching(/by itself/),
    });
    await signal(attempt.node_id, attempt.generation, "phone.home");
    expect(await attemptOf(attempt.id)).toMatchObject({ status: "completed", failure_code: null });
  });

  it("ends for a silent or slow external system, whose late completion still counts", async () => {
    for (const [column, code] of [
      ["lease_expires_at", "lease_expired"],
      ["deadline_at", "deadline_passed"],
    ] as const) {
      const { attempt } = await begin();
      await report(attempt.id, "progress", { step: "writing the disk" });
      await pass(attempt.id, column);
      await sweep();
      expect(await attemptOf(attempt.id)).toMatchObject({
        status: "failed_retryable",
        failure_code: code,
        reason: expect.stringMatching(/It last reported: writing the disk/),
      });
      await report(attempt.id, "complete");
      await sweep();
      expect((await attemptOf(attempt.id)).status).toBe("verifying");
    }
  });

  it("ends although another attempt cannot be changed", async () => {
    const stuck = [(await begin()).attempt, (await begin()).attempt];
    stuck.sort((a, b) => (a.node_id < b.node_id ? -1 : 1));
    const { pool } = api.database.database;
    await pool.query(`create function refuse_one() returns trigger language plpgsql as $$ begin
      if new.id = '${stuck[0].id}' then raise exception 'broken'; end if; return new; end $$`);
    await pool.query(
      "create trigger refuse_one before update of state on external_attempts for each row execute function refuse_one()",
    );
    await pool.query("update external_attempts set lease_expires_at = now() where id = any($1)", [
      stuck.map(({ id }) => id),
    ]);
    await sweep();
    expect((await attemptOf(stuck[0].id)).status).toBe("begun");
    expect((await attemptOf(stuck[1].id)).status).toBe("failed_retryable");
    await pool.query("drop trigger refuse_one on external_attempts");
  });

  it("keeps a lease that the external system renews", async () => {
    const { attempt } = await begin();
    await pass(attempt.id, "lease_expires_at");
    await report(attempt.id, "progress", { step: "slow" });
    await sweep();
    expect((await attemptOf(attempt.id)).status).toBe("in_progress");
  });
});

describe("NICo #2969: a node that a stale report moves again", () => {
  it("keeps the reports about a replaced attempt, shows them, and applies none", async () => {
    const { host, attempt: first } = await begin();
    await report(first.id, "fail", { code: "disk_broken", message: "no disk, password=hunter2" });
    const failed = await attemptOf(first.id);
    expect(failed).toMatchObject({ status: "failed_retryable", failure_code: "disk_broken" });
    expect(JSON.stringify(failed)).not.toContain("hunter2");
    const { attempt: second } = await begin(host);
    const late = await report(first.id, "complete");
    expect(late).toMatchObject({ outcome: "kept", attempt: { superseded: true, late_reports: 1 } });
    expect(await attemptOf(first.id)).toMatchObject({
      status: "failed_retryable",
      last_late_report: "complete by foreman: the host is provisioned",
    });
    expect((await attemptOf(second.id)).status).toBe("begun");
  });

  it("takes a repeated report once, and refuses one that contradicts the attempt", async () => {
    const { attempt } = await begin();
    await report(attempt.id, "complete");
    expect(await report(attempt.id, "complete")).toMatchObject({ outcome: "repeated" });
    await report(attempt.id, "progress", { step: "again" }, 409);
    const other = await newToken(`other-${randomUUID().slice(0, 8)}`);
    await make(`${ATTEMPTS}/${attempt.id}/complete`, {}, 403, other);
    await make(`${ATTEMPTS}/${attempt.id}/abandon`, { reason: "the system is gone" }, 202, other);
    expect((await attemptOf(attempt.id)).status).toBe("abandoned");
  });

  it("belongs to one external system at a time, until its lease is over", async () => {
    const { host, attempt } = await begin();
    const refused = await api.ask("POST", ATTEMPTS, host, foreman);
    expect([refused.status, refused.problem.detail]).toEqual([
      409,
      expect.stringMatching(/Wait for its end, or abandon/),
    ]);
    await pass(attempt.id, "lease_expires_at");
    expect((await begin(host)).attempt.number).toBe(2);
    expect((await attemptOf(attempt.id)).failure_code).toBe("lease_expired");
  });
});

describe("NICo #5938: hosts that ran long before anybody told the hub", () => {
  it("are found by comparing, and adopted without a new provisioning", async () => {
    const lost = newHost();
    const { host: running, attempt } = await begin();
    const { attempt: gone, host: forgotten } = await begin(newHost({ provisioner: "tinker" }));
    const hosts = [lost, running].map(({ hostname }) => ({ hostname, state: "provisioned" }));
    const compare = (apply: boolean, provisioner = "foreman", more = {}) =>
      make(`${ATTEMPTS}/reconcile`, { provisioner, site_id: siteId, hosts, apply, ...more }, 200, foreman);
    const findings = async (apply: boolean, provisioner?: string, more = {}) =>
      Object.fromEntries(
        (await compare(apply, provisioner, more)).hosts.map((one: { hostname: string }) => [one.hostname, one]),
      );
    expect(await findings(false)).toMatchObject({
      [lost.hostname]: { finding: "unknown_to_hub", applied: false },
      [running.hostname]: { finding: "completion_unheard", applied: false },
    });
    expect((await attemptOf(attempt.id)).status).toBe("begun");
    expect((await findings(true))[running.hostname]).toMatchObject({ applied: true, next_action: null });
    expect((await attemptOf(attempt.id)).status).toBe("verifying");
    expect((await findings(false, "tinker"))[forgotten.hostname]).toMatchObject({ finding: "unknown_to_provisioner" });
    expect(
      await findings(false, "tinker", { whole: false }),
      "a part says nothing about other hosts",
    ).not.toHaveProperty(forgotten.hostname);
    expect((await attemptOf(gone.id)).status).toBe("begun");

    const facts = { host: "10.9.9.9", provisioned_at: "2025-02-03T04:05:06Z" };
    const adopted = await make(`${ATTEMPTS}/adopt`, { ...lost, facts }, 201, foreman);
    expect(adopted.attempt).toMatchObject({ status: "verifying", provisioned_at: "2025-02-03T04:05:06.000Z" });
    await signal(adopted.attempt.node_id, adopted.attempt.generation);
    const node = await nodeOf(adopted.attempt.node_id);
    expect([node.status, node.readiness.ready]).toEqual(["active", true]);
    expect(node.unschedulable_reasons[0]).toMatch(/nobody knows who used it/);
    expect((await findings(false))[lost.hostname]).toMatchObject({ finding: "agrees" });
  });

  it("leave the fleet although no agent ever came", async () => {
    const { attempt } = await begin();
    await report(attempt.id, "abandon", { reason: "wrong host" });
    const answer = await api.ask("POST", `${NODES}/${attempt.node_id}/remove`, { reason: "wrong host" });
    expect(answer.status, JSON.stringify(answer.problem)).toBe(202);
  });
});

describe("a request to provision a host", () => {
  it("is refused while the node is quarantined, whoever quarantined it", async () => {
    const { host, attempt } = await begin();
    await report(attempt.id, "complete");
    await signal(attempt.node_id, attempt.generation);
    await make(`${NODES}/${attempt.node_id}/quarantine`, { reason: "evidence" }, 200);
    for (const owner of ["operator", "cleanup", "identity"]) {
      const { pool } = api.database.database;
      await pool.query("update nodes set quarantined_by = $2 where id = $1", [attempt.node_id, owner]);
      const refused = await api.ask("POST", ATTEMPTS, host, foreman);
      expect([refused.status, refused.problem.detail]).toEqual([
        409,
        expect.stringMatching(new RegExp(`quarantined by ${owner}.*lift-node-quarantine`)),
      ]);
      expect((await nodeOf(attempt.node_id)).status).toBe("quarantined");
    }
    await make(`${NODES}/${attempt.node_id}/lift-quarantine`, { reason: "looked" }, 200);
    expect((await begin(host)).attempt.number).toBe(2);
  });

  it("is refused for a host of another mode, and for what does not exist", async () => {
    const byHand = { hostname: "by-hand", sku_id: skuId, region_code: "r1", site_id: siteId };
    await make(NODES, { onboarding_mode: "manual", ...byHand }, 201);
    await make(ATTEMPTS, newHost({ hostname: "by-hand" }), 409, foreman);
    const { host, attempt } = await begin();
    await report(attempt.id, "abandon", { reason: "another SKU" });
    const other = await make(
      "/api/v1/admin/skus",
      { id: `other-${randomUUID().slice(0, 8)}`, gpu_vendor: "none", gpus_total: 0 },
      201,
    );
    for (const more of [{ sku_id: other.id }, { region_code: "r2" }]) {
      const refused = await api.ask("POST", ATTEMPTS, { ...host, ...more }, foreman);
      expect([refused.status, refused.problem.detail]).toEqual([
        409,
        expect.stringContaining("or remove the node first"),
      ]);
    }
    expect((await begin(host)).attempt.node_id).toBe(attempt.node_id);
    await make(ATTEMPTS, newHost({ sku_id: "none" }), 422, foreman);
    await make(ATTEMPTS, newHost({ profile_id: randomUUID() }), 422, foreman);
    await make(ATTEMPTS, newHost({ site_id: null }), 403, foreman);
  });
});
