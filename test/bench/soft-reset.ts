import { join } from "node:path";
import { z } from "zod";
import { sql } from "../../hub/db/orm.ts";
import { AllocationDetail } from "../../shared/api/allocations.ts";
import type { NodeId } from "../../shared/ids.ts";
import { ownLinuxObstacle } from "../fakes/maas/host/own-linux.ts";
import { SSH_KEY } from "../support/allocatable-node.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts, ensureSku, seedSite } from "../support/seed-site.ts";
import { until } from "../support/until.ts";
import { type Bench, percentile, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";

const ROUNDS = 7;
const ALLOCATIONS = "/api/v1/admin/allocations";
const SKU = { id: "cpu.256c", description: "256 CPUs", gpu_vendor: "none", gpus_total: 0 } as const;
const HOSTS = demoHosts(1);

interface Round {
  readonly total: number;
  /** The seconds in which at least one task of the reset ran on the host. */
  readonly onHost: number;
}

/**
 * Measures soft resets: the time from the release of an allocation until the node can be allocated again, and the part of it in which no task runs on
 * the host. The host has a Linux of its own, on which a real agent cleans; it has no GPU.
 */
export async function measureSoftReset(stateDir: string): Promise<Figure[]> {
  const obstacle = await ownLinuxObstacle();
  if (obstacle !== null) {
    process.stderr.write(`SKIPPED: soft resets: ${obstacle}\n`);
    return [];
  }
  const rounds = await withDatabase(stateDir, (bench) => measureRounds(bench, join(stateDir, "rig")));
  const note = `${ROUNDS} soft resets of a host without GPU, one hub`;
  const figures = (name: string, of: (round: Round) => number, atMost?: number): Figure[] => {
    const seconds = rounds.map(of);
    const bound = atMost === undefined ? {} : { atMost };
    return [
      { name: `soft reset, ${name}, p50`, value: percentile(seconds, 0.5), unit: "s", note, ...bound },
      { name: `soft reset, ${name}, max`, value: Math.max(...seconds), unit: "s", note },
    ];
  };
  return [
    ...figures("from release to schedulable", ({ total }) => total),
    ...figures("part in which a task runs on the host", ({ onHost }) => onHost),
    ...figures("beyond what the tasks take", ({ total, onHost }) => total - onHost, 2),
  ];
}

async function measureRounds(bench: Bench, stateDir: string): Promise<Round[]> {
  const [host] = HOSTS;
  if (host === undefined) throw new Error("no host");
  const rig = await startRig({
    stateDir,
    machines: 1,
    speed: 30,
    ownLinux: [host.hostname],
    databaseUrl: bench.url,
  });
  try {
    const site = await seedSite(rig.api, rig.maas, HOSTS);
    await ensureSku(rig.api, SKU);
    await rig.api.onboard({ site_id: site.siteId, profile_id: site.profileId, sku_id: SKU.id, ...host });
    const rounds: Round[] = [];
    for (let round = 0; round < ROUNDS; round += 1)
      rounds.push(await resetOnce(rig, bench, await schedulableNode(rig)));
    return rounds;
  } finally {
    await rig.stop();
  }
}

const schedulableNode = (rig: Rig): Promise<NodeId> =>
  until("the node can be allocated", async () => (await rig.api.nodes()).find(({ schedulable }) => schedulable)?.id, {
    timeoutMs: 240_000,
    everyMs: 20,
  });

async function resetOnce(rig: Rig, bench: Bench, nodeId: NodeId): Promise<Round> {
  const request = { node_id: nodeId, tenant: "bench", login_user: "ada", ssh_keys: [SSH_KEY] };
  const { id } = await rig.api.call(AllocationDetail, "POST", ALLOCATIONS, request);
  await until("the tenant's account", async () => {
    const { status, error_message } = await rig.api.call(AllocationDetail, "GET", `${ALLOCATIONS}/${id}`);
    if (status === "failed") throw new Error(String(error_message));
    return status === "active" ? true : undefined;
  });
  const began = Date.now();
  await rig.api.call(AllocationDetail, "POST", `${ALLOCATIONS}/${id}/release`, { reason: "the tenant left" });
  await schedulableNode(rig);
  const total = (Date.now() - began) / 1000;
  return { total, onHost: await secondsOnHost(bench, nodeId, new Date(began)) };
}

const Row = z.object({ seconds: z.number() });

/** Returns the seconds after `since` in which at least one task of the node ran. Bench and database share one clock. */
async function secondsOnHost(bench: Bench, nodeId: NodeId, since: Date): Promise<number> {
  const { rows } = await bench.database.db.execute(sql`
    select coalesce(sum(extract(epoch from upper(span) - lower(span))), 0)::float8 as seconds
    from (select unnest(range_agg(tstzrange(started_at, finished_at))) as span from tasks
          where node_id = ${nodeId} and started_at >= ${since.toISOString()}::timestamptz and finished_at is not null) spans`);
  return Row.parse(rows[0]).seconds;
}
