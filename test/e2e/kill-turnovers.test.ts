import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { AllocationDetail } from "../../shared/api/allocations.ts";
import { Decommission } from "../../shared/api/decommissions.ts";
import type { NodeSummary } from "../../shared/api/nodes.ts";
import { Profile } from "../../shared/api/profiles.ts";
import { SanitizationSummary } from "../../shared/api/sanitization.ts";
import { TaskView } from "../../shared/api/tasks.ts";
import { HostShell } from "../demo/host-shell.ts";
import { verifyRecord } from "../demo/verify-record.ts";
import { NODE_ON_HOST, ownLinuxObstacle, REPOSITORY_ON_HOST } from "../fakes/maas/host/own-linux.ts";
import { SSH_KEY } from "../support/allocatable-node.ts";
import { newHubFolder } from "../support/hub-state.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts, ensureSku, seedSite } from "../support/seed-site.ts";
import { readCounters } from "../support/simulator-counters.ts";
import { LONG_WAIT_MS, until } from "../support/until.ts";

const ADMIN = "/api/v1/admin";
const SKU = { id: "cpu.256c", description: "256 CPUs", gpu_vendor: "none", gpus_total: 0 } as const;
/** The first host changes hands by a soft reset, the second by a reimage. */
const HOSTS = demoHosts(2);
const HUB_KILLS = 4;
/** An agent is killed when the hub first tells that one of these tasks runs on its host. */
const KILLED_IN = ["node.drain", "allocation.revoke_user", "node.storage_cleanup", "node.sample_disks"];
/** The tenant leaves so many files that a storage cleanup is still at work when its agent is killed. */
const FILES = 20_000;
/**
 * What is true of each host in the end. The record of the reimage is incomplete, because the simulated MAAS names no disk that it has erased.
 */
const OUTCOMES = [
  ["active", "soft_reset", "clean", 1],
  ["active", "reimage", "incomplete", 0],
] as const;

const CleaningResult = z.looseObject({ steps: z.array(z.looseObject({ outcome: z.string(), evidence: z.unknown() })) });
/**
 * How a storage cleanup ended. The worker of a cleanup dies with the agent on a host without systemd, because the kernel then ends all processes of the
 * host.
 */
function endOfCleanup({ state, error_code, result }: z.output<typeof TaskView>): string {
  const failed =
    state === "succeeded" ? CleaningResult.parse(result).steps.filter((one) => one.outcome === "failed") : [];
  const [first] = failed.map(({ evidence }) => z.looseObject({ error: z.unknown() }).parse(evidence).error);
  return failed.length > 0 ? String(first) : [state, error_code ?? []].flat().join(": ");
}

/** How a cleanup ends whose agent was killed: while the worker was at work, or after the start was journalled and before the worker was started. */
const ENDED_WITH_THE_AGENT = ["worker_lost", "failed: interrupted"];

const AGENT_ON_HOST = `${REPOSITORY_ON_HOST}/agent/main.ts`;

const obstacle = await ownLinuxObstacle();
if (obstacle !== null) process.stderr.write(`SKIPPED: turnovers under kill -9: ${obstacle}\n`);

/** The pids of the agent and of the agent's workers on a host with a Linux of its own. */
function agentOf(hostFolder: string): number[] {
  const file = join(hostFolder, "run/units/muster-agent.service.pid");
  const unit = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
  const all = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(all)];
  return all(unit)
    .filter((pid) => pid > 0)
    .filter((pid) => readOrEmpty(`/proc/${pid}/cmdline`).startsWith(`${NODE_ON_HOST}\0${AGENT_ON_HOST}\0`));
}
/** The files of a process in /proc are unreadable after the process has ended. */
function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
const childrenOf = (pid: number): number[] =>
  readOrEmpty(`/proc/${pid}/task/${pid}/children`).trim().split(" ").filter(Boolean).map(Number);

describe.skipIf(obstacle !== null)("kill -9 of the hub and of agents while hosts change hands", () => {
  const stateDir = newHubFolder("muster-kill-turnover-");
  let rig: Rig;
  let nodes: readonly NodeSummary[];

  beforeAll(async () => {
    const ownLinux = HOSTS.map(({ hostname }) => hostname);
    rig = await startRig({ stateDir, machines: HOSTS.length, speed: 30, ownLinux });
    nodes = await bringIntoService();
  });
  afterAll(async () => {
    await rig?.stop();
    rmSync(stateDir, { recursive: true, force: true });
  });

  async function bringIntoService(): Promise<readonly NodeSummary[]> {
    const site = await seedSite(rig.api, rig.maas, HOSTS);
    await ensureSku(rig.api, SKU);
    const profile = await rig.api.call(Profile, "POST", `${ADMIN}/maas-sites/${site.siteId}/profiles`, {
      name: "reimaged",
      description: "hosts that are deployed again after a tenant",
      turnover_mode: "reimage",
    });
    for (const [index, host] of HOSTS.entries()) {
      const profile_id = index === 1 ? profile.id : site.profileId;
      await rig.api.onboard({ site_id: site.siteId, profile_id, sku_id: SKU.id, ...host });
    }
    return until(
      "all hosts in service",
      async () => {
        const now = await rig.api.nodes();
        return now.length === HOSTS.length && now.every(({ schedulable }) => schedulable) ? now : undefined;
      },
      { timeoutMs: LONG_WAIT_MS, everyMs: 300 },
    );
  }

  const nodeOf = (index: number): NodeSummary => {
    const node = nodes.find(({ hostname }) => hostname === HOSTS[index]?.hostname);
    if (node === undefined) throw new Error(`no node of host ${index}`);
    return node;
  };
  const allocationOf = (id: string) => rig.api.call(AllocationDetail, "GET", `${ADMIN}/allocations/${id}`);

  async function allocate(index: number): Promise<AllocationDetail> {
    const node = nodeOf(index);
    const request = { node_id: node.id, tenant: `tenant-${index}`, login_user: "ada", ssh_keys: [SSH_KEY] };
    const { id } = await rig.api.call(AllocationDetail, "POST", `${ADMIN}/allocations`, request);
    const granted = await until("the tenant's account", async () => {
      const now = await allocationOf(id);
      if (now.status === "failed") throw new Error(`${now.error_message}`);
      return now.status === "active" ? now : undefined;
    });
    const GrantTask = z.looseObject({ result: z.looseObject({ uid: z.int() }) });
    const task = await rig.api.call(GrantTask, "GET", `${ADMIN}/tasks/${granted.grant_task_id}`);
    await new HostShell(join(stateDir, "hosts", node.hostname)).sh(
      task.result.uid,
      `mkdir /tmp/weights; cd /tmp/weights; seq ${FILES} | xargs touch; sleep 3600 >/dev/null 2>&1 &`,
    );
    return granted;
  }

  async function endTenancies(allocations: readonly AllocationDetail[]): Promise<void> {
    for (const { id } of allocations)
      await rig.api.call(AllocationDetail, "POST", `${ADMIN}/allocations/${id}/release`, { reason: "the tenant left" });
  }

  async function killHubs(): Promise<void> {
    for (let kill = 0; kill < HUB_KILLS; kill += 1) {
      await sleep(1_000 + kill * 700);
      const hub = rig.hubPid();
      process.kill(hub, "SIGKILL");
      await until("the hub is started again", () => (rig.hubPid() === hub ? undefined : true));
      await rig.hubReady();
    }
  }

  const tasksOf = (node: NodeSummary) => rig.api.all(TaskView, `${ADMIN}/nodes/${node.id}/tasks?limit=100`);

  /** Kills each host's agent once in each of the tasks `KILLED_IN`, until `ended` is aborted. Returns what was killed, as "host task". */
  async function killAgents(ended: AbortSignal): Promise<ReadonlySet<string>> {
    const killed = new Set<string>();
    while (!ended.aborted) {
      // The hub refuses connections while it restarts.
      for (const node of nodes)
        for (const { type, state } of await tasksOf(node).catch(() => [])) {
          const what = `${HOSTS.findIndex(({ hostname }) => hostname === node.hostname)} ${type}`;
          if (state !== "running" || !KILLED_IN.includes(type) || killed.has(what)) continue;
          const pids = agentOf(join(stateDir, "hosts", node.hostname));
          for (const pid of pids) process.kill(pid, "SIGKILL");
          if (pids.length > 0) killed.add(what);
        }
      await sleep(150);
    }
    return killed;
  }

  const decommissions = () => rig.api.all(Decommission, `${ADMIN}/decommissions`);

  /** No person helps: a turnover that stops with a failure fails the test. */
  const allOver = () =>
    until(
      "all turnovers to be completed",
      async () => {
        const all = await decommissions();
        const failed = all.find(({ status }) => status.startsWith("failed"));
        if (failed !== undefined) return `${failed.mode}: ${failed.error_code}: ${failed.error_message}`;
        if (all.length === HOSTS.length && all.every(({ status }) => status === "completed")) return "all completed";
        throw new Error(all.map((one) => `${one.mode} in ${one.current_stage}: ${one.waiting_for}`).join("; "));
      },
      { timeoutMs: LONG_WAIT_MS, everyMs: 500 },
    );

  const recordsOf = ({ id }: NodeSummary) =>
    rig.api.all(SanitizationSummary, `${ADMIN}/sanitization-records?node_id=${id}`);

  it("each host changes hands once, with one last record, and nothing destructive happens twice", async () => {
    const allocations = await Promise.all(HOSTS.map((_, index) => allocate(index)));
    const ended = new AbortController();
    const killing = killAgents(ended.signal);
    try {
      await endTenancies(allocations);
      await killHubs();
      expect(await allOver()).toBe("all completed");
    } finally {
      ended.abort();
    }
    const killed = await killing;
    expect(killed.size, "agents killed in a task").toBeGreaterThanOrEqual(1);

    const counters = await readCounters(rig.maas.control);
    const calls = HOSTS.map(({ hostname }) => {
      const machine = Object.values(counters.machines).find((one) => one["hostname"] === hostname);
      return [machine?.commission, machine?.deploy, machine?.release];
    });
    expect(calls, "commissioned, deployed, released").toEqual([
      [1, 1, 0],
      [1, 2, 1],
    ]);
    const after = await rig.api.nodes();
    for (const [index, [status, mode, verdict, cleanups]] of OUTCOMES.entries()) {
      const node = nodeOf(index);
      const ends = (await tasksOf(node)).filter(({ type }) => type === "node.storage_cleanup").map(endOfCleanup);
      const records = await recordsOf(node);
      expect({
        status: after.find(({ id }) => id === node.id)?.status,
        allocation: (await allocationOf(allocations[index]?.id ?? "")).status,
        records: records.map((record) => [record.mode, record.verdict, record.signed_by_agent]),
        cleanups: ends.filter((end) => !ENDED_WITH_THE_AGENT.includes(end)),
      }).toEqual({
        status,
        allocation: "ended",
        records: [[mode, verdict, true]],
        cleanups: Array.from({ length: cleanups }, () => "succeeded"),
      });
      // Only a cleanup that ended because its agent was killed is ordered again.
      expect(ends.length - cleanups, "cleanups that ended with their agent").toBeLessThanOrEqual(cleanups);
      await verifyRecord({ api: rig.api, stateDir, tell: () => undefined }, node.id, allocations[index]?.id ?? "");
    }
  });
});
