/** Takes the nodes of a site with secrets through tenancies and the modes of a decommission, as an operator does. */
import type { Pool } from "pg";
import { expect } from "vitest";
import { z } from "zod";
import { TASK_CHANNEL } from "../../hub/db/queries/tasks.ts";
import { isEnded } from "../../hub/db/queries/workflows.ts";
import type { TaskType } from "../../shared/tasks/index.ts";
import {
  DECOMMISSION_MODES,
  type DecommissionMode,
  type DecommissionStage,
  WorkflowStatus,
} from "../../shared/workflow-status.ts";
import { agentPids } from "./agent-processes.ts";
import { SSH_KEY } from "./allocatable-node.ts";
import { CanaryHost, LOGIN_USER } from "./canary-host.ts";
import type { CanarySite } from "./canary-site.ts";
import { LONG_WAIT_MS, until } from "./until.ts";

/** A reinstall is no request for a node, but for an instance. */
type NodeMode = Exclude<DecommissionMode, "reinstall">;

/** What an operator asks for in each mode of a decommission. The compiler reports a mode without a request. */
const DECOMMISSION_REQUESTS: Readonly<Record<NodeMode, { readonly path: string; readonly body: object }>> = {
  drain: { path: "drain", body: {} },
  remove: { path: "remove", body: {} },
  release: { path: "release", body: {} },
  soft_reset: { path: "decommission", body: { mode: "soft_reset" } },
  reimage: { path: "decommission", body: { mode: "reimage", erase: "quick" } },
  storage_cleanup: { path: "storage-cleanup", body: {} },
  full_decommission: {
    path: "decommission",
    body: { mode: "full_decommission", erase: "quick", remove_maas_record: true, force_release_allocation: true },
  },
};

const Now = z.looseObject({
  status: WorkflowStatus,
  mode: z.string(),
  current_stage: z.string(),
  waiting_for: z.string().nullable(),
  error_message: z.string().nullable(),
});
type Now = z.output<typeof Now>;
const Created = z.looseObject({ decommission_id: z.string() });
const ReportToken = z.looseObject({ token: z.string() });
const Allocation = z.looseObject({
  id: z.string(),
  status: z.string(),
  error_message: z.string().nullable(),
  decommission_id: z.string().nullable(),
});
type Allocation = z.output<typeof Allocation>;
const Baseline = z.looseObject({ state: z.string(), unreadable: z.array(z.unknown()) });
const PATIENCE = { timeoutMs: LONG_WAIT_MS, everyMs: 100 };

export class CanaryDecommissions {
  readonly #world: CanarySite;
  constructor(world: CanarySite) {
    this.#world = world;
  }

  async start(nodeId: string, mode: NodeMode): Promise<string> {
    const { path, body } = DECOMMISSION_REQUESTS[mode];
    const created = await this.#world.ask("POST", `nodes/${nodeId}/${path}`, { reason: "old", ...body });
    return Created.parse(created).decommission_id;
  }

  verb = (id: string, name: string): Promise<unknown> =>
    this.#world.ask("POST", `decommissions/${id}/${name}`, { reason: "mended" });

  /** Waits until a decommission is over or has failed, and collects the secrets that a deploy has created. */
  #stops(id: string, each: (now: Now) => Promise<void> = async () => undefined): Promise<Now> {
    const look = async () => {
      this.#world.collect();
      this.#world.keepLogs();
      const now = Now.parse(await this.#world.ask("GET", `decommissions/${id}`));
      await each(now);
      if (isEnded(now.status) || now.status.startsWith("failed")) return now;
      throw new Error(`the ${now.mode} is ${now.status} in ${now.current_stage}: ${now.waiting_for}`);
    };
    return until(`decommission ${id} to end`, look, PATIENCE);
  }

  async completes(id: string): Promise<void> {
    const { mode, status, current_stage, error_message } = await this.#stops(id);
    expect({ mode, status, current_stage, error_message }).toMatchObject({ status: "completed" });
  }

  /** Waits until a decommission has failed in a stage because of what the host's tools printed. */
  async failsAloud(id: string, stage: string): Promise<void> {
    const failed = await this.#stops(id);
    expect(failed).toMatchObject({ current_stage: stage, error_message: expect.stringContaining("[redacted]") });
    expect(JSON.stringify(await this.#world.ask("GET", "diagnostics"))).toContain("[redacted]");
  }

  async #allocate(nodeId: string, root: boolean, status: string): Promise<Allocation> {
    const request = { node_id: nodeId, tenant: "canary", login_user: LOGIN_USER, ssh_keys: [SSH_KEY], root };
    const { id } = Allocation.parse(await this.#world.ask("POST", "allocations", request));
    return until(
      `the allocation to be ${status}`,
      async () => {
        const now = await this.#allocation(id);
        if (now.status === status) return now;
        throw new Error(`the allocation is ${now.status}: ${now.error_message}`);
      },
      PATIENCE,
    );
  }
  #allocation = async (id: string): Promise<Allocation> =>
    Allocation.parse(await this.#world.ask("GET", `allocations/${id}`));

  /** Ends a tenancy, and returns the id of the decommission that cleans the node. */
  async #release({ id }: Allocation): Promise<string> {
    await this.#world.ask("POST", `allocations/${id}/release`, { reason: "the tenant left" });
    return until("the turnover to begin", async () => (await this.#allocation(id)).decommission_id ?? undefined);
  }

  /** Asks for a new system on a tenant's host, and returns the id of the operation. */
  async #reinstall({ id }: Allocation): Promise<string> {
    const request = { reason: "the system is broken", acknowledge_data_loss: true };
    return Created.parse(await this.#world.ask("POST", `instances/${id}/reinstall`, request)).decommission_id;
  }

  /** Uses a host's new report token, and a token that is no longer valid, while an operation deploys the host. */
  async #signal(nodeId: string): Promise<void> {
    const { secrets } = this.#world;
    const ask = async () => ReportToken.parse(await this.#world.ask("POST", `nodes/${nodeId}/report-token`, {})).token;
    const [former, present] = [await ask(), await ask()];
    secrets.add("a former report token of a reimage", former);
    secrets.add("the report token of a reimage", present);
    const description = `ran with ${present}, and before with token=${former}`;
    for (const token of [former, present]) {
      const event = { name: "modules-final", event_type: "finish", result: "FAIL", description };
      await this.#world.askListener("POST", `/internal/v1/phone-home/${token}`, `hostname=${token}&instance_id=y`);
      await this.#world.askListener("POST", `/internal/v1/cloud-init/${token}`, event);
    }
  }

  /** Waits until a stage tries once more after a failure because of what the host's tools printed. */
  #retriesAloud = (pool: Pool, id: string, stage: DecommissionStage): Promise<true> =>
    until(
      `${stage} to fail aloud`,
      async () => {
        const { rows } = await pool.query(
          "select from workflow_events where workflow_id = $1 and stage = $2 and message like '%[redacted]%'",
          [id, stage],
        );
        return rows.length > 0 || undefined;
      },
      PATIENCE,
    );

  /** Waits until an agent's task has failed because of what the host's tools printed. The agent tries the task once more after a while. */
  #taskFailsAloud = (pool: Pool, id: string, type: TaskType): Promise<true> =>
    until(
      `the task ${type} to fail aloud`,
      async () => {
        const { rows } = await pool.query(
          "select from tasks where workflow_id = $1 and type = $2 and error_message like '%[redacted]%'",
          [id, type],
        );
        return rows.length > 0 || undefined;
      },
      PATIENCE,
    );

  async turnOver(pool: Pool): Promise<void> {
    const world = this.#world;
    const [first, second] = await until(
      "two nodes to be schedulable",
      async () => {
        const found = (await world.rig.api.nodes()).filter((one) => one.schedulable);
        return found.length >= 2 ? found : undefined;
      },
      PATIENCE,
    );
    if (first === undefined || second === undefined) throw new Error("there are no two nodes");
    await Promise.all([
      this.#inService(pool, first.id, world.hostFolder(first.hostname)),
      this.#outOfService(pool, second.id, world.hostFolder(second.hostname)),
    ]);
    const { rows } = await pool.query<{ mode: string; records: number }>(
      `select d.mode, count(r.*)::int records from node_decommissions d
        join workflows w on w.id = d.decommission_id and w.status = 'completed'
        left join sanitization_records r using (decommission_id) group by d.mode`,
    );
    const records = Object.fromEntries(rows.map((row) => [row.mode, row.records]));
    expect(Object.keys(records).toSorted()).toEqual(DECOMMISSION_MODES.toSorted());
    expect(records).toMatchObject({ soft_reset: 1, reimage: 1, full_decommission: 1 });
  }

  /** Takes a new baseline of a host after a change by the site, so that later checks look only for what a tenant left. */
  async #newBaseline(nodeId: string): Promise<void> {
    await this.#world.ask("POST", `nodes/${nodeId}/baseline`, { reason: "new tools" });
    // The hub keeps the first baseline, in which the host's tools were unreadable, until the agent has taken the new one.
    const look = async () => {
      const { state, unreadable } = Baseline.parse(await this.#world.ask("GET", `nodes/${nodeId}/baseline`));
      if (state === "taken" && unreadable.length === 0) return true;
      throw new Error(`the baseline is ${state}: ${JSON.stringify(unreadable)}`);
    };
    await until("the new baseline", look, PATIENCE);
  }

  /**
   * Restarts a host's agent, and takes a new baseline. A restarted agent finds systemd on the host, without which it runs no tool that may hang. The
   * agent before the restart could still take a baseline in which the host's tools are unreadable.
   */
  async #restartAgent(pool: Pool, nodeId: string, root: string): Promise<void> {
    const before = await this.#sessionOf(pool, nodeId);
    for (const pid of agentPids(root)) process.kill(pid);
    await until(
      "the restarted agent to connect",
      async () => ((await this.#sessionOf(pool, nodeId)) > before ? true : undefined),
      PATIENCE,
    );
    await this.#newBaseline(nodeId);
  }

  async #sessionOf(pool: Pool, nodeId: string): Promise<number> {
    const sql = "select session_epoch::int epoch from agent_sessions where node_id = $1";
    return (await pool.query<{ epoch: number }>(sql, [nodeId])).rows[0]?.epoch ?? 0;
  }

  /** Orders a cleaning of GPUs outside a decommission, because no stand-in resets the GPUs that a decommission would have to clean. */
  async #scrubFailsAloud(pool: Pool, nodeId: string): Promise<void> {
    const input = { vendor: "nvidia", expected_gpus: 1, rungs: ["reset"], kill_holders: true, plan: false };
    await pool.query(
      `insert into tasks (node_id, type, input, idempotency_key, deadline)
        values ($1, 'node.gpu_scrub', $2, 'aloud', now() + interval '10 min')`,
      [nodeId, input],
    );
    await pool.query("select pg_notify($1, $2)", [TASK_CHANNEL, nodeId]);
    const failed = await until(
      "the cleaning of GPUs to fail",
      async () => {
        const sql =
          "select error_code, error_message from tasks where idempotency_key = 'aloud' and finished_at is not null";
        return (await pool.query<{ error_code: string; error_message: string }>(sql)).rows[0];
      },
      PATIENCE,
    );
    expect(failed).toEqual({ error_code: "state_unreadable", error_message: expect.stringContaining("[redacted]") });
  }

  async #inService(pool: Pool, nodeId: string, root: string): Promise<void> {
    const world = this.#world;
    const host = new CanaryHost(root, world.secrets);
    await this.#restartAgent(pool, nodeId, root);
    host.mountWeka();
    host.fail("weka");
    const cleanup = await this.start(nodeId, "storage_cleanup");
    await this.failsAloud(cleanup, "cleanup_storage");
    host.fail("dpkg", "ip", "nvidia-smi");
    await this.verb(cleanup, "resume");
    await this.failsAloud(cleanup, "validate_clean_node");
    host.fail();
    await this.verb(cleanup, "resume");
    await this.completes(cleanup);
    host.fail("nvidia-smi");
    await this.#scrubFailsAloud(pool, nodeId);

    const tenancy = await this.#allocate(nodeId, false, "active");
    host.fail("usermod");
    const reset = await this.#release(tenancy);
    await this.#retriesAloud(pool, reset, "revoke_users");
    await this.completes(reset);

    host.fail("visudo");
    const refused = await this.#allocate(nodeId, true, "failed");
    expect(refused.error_message).toContain("[redacted]");
    await this.#newSystem(nodeId, root, await this.#release(refused));

    const kept = await this.#allocate(nodeId, false, "active");
    await this.#newSystem(nodeId, root, await this.#reinstall(kept));
    expect(await this.#allocation(kept.id)).toMatchObject({ status: "active", decommission_id: null });
  }

  /** Signals while the machine deploys, and puts secrets and tools on the new system before the agent reads the host. */
  async #newSystem(nodeId: string, root: string, id: string): Promise<void> {
    const left = new Map<string, () => Promise<void>>([
      ["wait_for_deployed", () => this.#signal(nodeId)],
      ["ensure_hardware_sync_configured", async () => void new CanaryHost(root, this.#world.secrets)],
    ]);
    await this.#stops(id, async ({ current_stage }) => {
      const act = left.get(current_stage);
      left.delete(current_stage);
      await act?.();
    });
    expect([...left.keys()]).toEqual([]);
    await this.completes(id);
  }

  async #outOfService(pool: Pool, nodeId: string, root: string): Promise<void> {
    const host = new CanaryHost(root, this.#world.secrets);
    const tenancy = await this.#allocate(nodeId, true, "active");
    host.fail("userdel");
    const full = await this.start(nodeId, "full_decommission");
    await this.#taskFailsAloud(pool, full, "allocation.revoke_user");
    host.fail("usermod");
    await this.#retriesAloud(pool, full, "revoke_users");
    await this.completes(full);
    expect(await this.#allocation(tenancy.id)).toMatchObject({ status: "ended", decommission_id: full });
  }
}
