import { Pool } from "pg";
import { expect } from "vitest";
import { findHistoryFaults } from "./claim-history.ts";
import type { Rig } from "./rig.ts";
import { type SeededSite, seedSite } from "./seed-site.ts";
import { readCounters } from "./simulator-counters.ts";
import { LONG_WAIT_MS, until } from "./until.ts";

type Hosts = Parameters<typeof seedSite>[2];

/** Waits until `/readyz` of every hub answers `status`: 200 with a database, 503 without one. A hub that does not answer counts as 0. */
export const untilHubsAnswer = (rig: Rig, status: 200 | 503) =>
  until(`every hub's /readyz to answer ${status}`, async () => {
    const answers = await Promise.all(rig.hubs.map(({ url }) => fetch(`${url}/readyz`).catch(() => null)));
    return answers.every((answer) => (answer?.status ?? 0) === status) ? true : undefined;
  });

/** Starts a batch of onboardings of all the hosts. Returns what `expectBatchOutlived` compares with. */
export async function startBatch(rig: Rig, hosts: Hosts): Promise<BatchOverAnOutage> {
  const site: SeededSite = await seedSite(rig.api, rig.maas, hosts);
  await rig.api.onboardBatch({ site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId, nodes: hosts });
  return { rig, hosts: hosts.length, pids: rig.hubs.map((hub) => hub.pid()) };
}
export interface BatchOverAnOutage {
  readonly rig: Rig;
  readonly hosts: number;
  readonly pids: readonly number[];
}

/**
 * Waits until all hosts of the batch are active. Expects that the hubs are still the same processes, that each machine was commissioned and deployed
 * once, and that the database at `databaseUrl` holds each node, each move and each task's success once.
 */
export async function expectBatchOutlived({ rig, hosts, pids }: BatchOverAnOutage, databaseUrl: string): Promise<void> {
  await until(
    "all hosts are active",
    async () =>
      (await rig.api.nodes()).filter((node) => node.status === "active").length === hosts ? true : undefined,
    { timeoutMs: LONG_WAIT_MS, everyMs: 300 },
  );
  expect(rig.hubs.map((hub) => hub.pid())).toEqual(pids);
  const counters = await readCounters(rig.maas.control);
  expect(Object.keys(counters.machines)).toHaveLength(hosts);
  for (const [machine, { commission, deploy, release }] of Object.entries(counters.machines))
    expect({ machine, commission, deploy, release }).toEqual({ machine, commission: 1, deploy: 1, release: 0 });
  const onboardings = await rig.api.onboardings();
  expect(onboardings.map(({ status }) => status)).toEqual(Array.from({ length: hosts }, () => "completed"));
  const pool = new Pool({ connectionString: databaseUrl, max: 1 });
  try {
    expect(await findHistoryFaults(pool)).toEqual([]);
    const doubled = await pool.query(
      "select node_id, type from tasks where state = 'succeeded' group by 1, 2 having count(*) > 1",
    );
    expect(doubled.rows).toEqual([]);
    const nodes = await pool.query("select count(*)::int as nodes from nodes");
    expect(nodes.rows).toEqual([{ nodes: hosts }]);
  } finally {
    await pool.end();
  }
}
