import { rmSync } from "node:fs";
import { join } from "node:path";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findHistoryFaults } from "../support/claim-history.ts";
import { newHubFolder } from "../support/hub-state.ts";
import { type PostgresProxy, startPostgresProxy } from "../support/postgres-proxy.ts";
import { type RestartablePostgres, startRestartablePostgres } from "../support/restartable-postgres.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts, seedSite } from "../support/seed-site.ts";
import { readCounters } from "../support/simulator-counters.ts";
import { until } from "../support/until.ts";

const HOSTS = demoHosts(6);
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

describe("two hubs whose PostgreSQL loses commits, cuts connections and is restarted while six hosts are onboarded", () => {
  const stateDir = newHubFolder("muster-database-");
  let postgres: RestartablePostgres;
  let proxy: PostgresProxy;
  let rig: Rig;

  beforeAll(async () => {
    postgres = await startRestartablePostgres(join(stateDir, "server"));
    proxy = await startPostgresProxy(postgres.url);
    rig = await startRig({ stateDir, machines: HOSTS.length, speed: 30, hubs: 2, databaseUrl: proxy.url });
  });
  afterAll(async () => {
    if (proxy !== undefined) proxy.decide = () => "pass";
    await rig?.stop();
    await proxy?.close();
    await postgres?.stop();
    rmSync(stateDir, { recursive: true, force: true });
  });

  const readiness = () =>
    Promise.all(rig.hubs.map(async ({ url }) => (await fetch(`${url}/readyz`).catch(() => null))?.status ?? 0));

  it("nothing is lost and nothing is written twice, with the same two processes to the end", async () => {
    const site = await seedSite(rig.api, rig.maas, HOSTS);
    await rig.api.onboardBatch({ site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId, nodes: HOSTS });
    const pids = rig.hubs.map((hub) => hub.pid());

    proxy.decide = (moment) => {
      if (Math.random() * (moment === "commit" ? 12 : 80) >= 1) return "pass";
      return Math.random() < 0.5 ? "lost_before" : "lost_after";
    };
    for (const how of ["fast", "immediate", "kill"] as const) {
      await pause(1_500);
      proxy.cutAll();
      await pause(1_500);
      await postgres.restart(how, () =>
        until("both hubs say that they are not ready", async () =>
          (await readiness()).every((status) => status === 503) ? true : undefined,
        ),
      );
    }
    await pause(2_000);
    const { commit, statement } = proxy.met;
    await until("each kind of loss to be met", () =>
      commit.lost_before > 0 && commit.lost_after > 0 && statement.lost_before + statement.lost_after > 0
        ? true
        : undefined,
    );
    proxy.decide = () => "pass";
    await until("both hubs are ready", async () =>
      (await readiness()).every((status) => status === 200) ? true : undefined,
    );
    await until(
      "all hosts are active",
      async () =>
        (await rig.api.nodes()).filter((node) => node.status === "active").length === HOSTS.length ? true : undefined,
      { timeoutMs: 180_000, everyMs: 500 },
    );

    expect(rig.hubs.map((hub) => hub.pid())).toEqual(pids);
    const counters = await readCounters(rig.maas.control);
    expect(Object.keys(counters.machines)).toHaveLength(HOSTS.length);
    for (const [machine, { commission, deploy, release }] of Object.entries(counters.machines))
      expect({ machine, commission, deploy, release }).toEqual({ machine, commission: 1, deploy: 1, release: 0 });
    expect((await rig.api.onboardings()).map((onboarding) => onboarding.status)).toEqual(HOSTS.map(() => "completed"));
    await expectHistoryWithoutFault();
  });

  async function expectHistoryWithoutFault(): Promise<void> {
    const pool = new Pool({ connectionString: postgres.url, max: 1 });
    try {
      expect(await findHistoryFaults(pool)).toEqual([]);
      const doubled = await pool.query(
        "select node_id, type, count(*) from tasks where state = 'succeeded' group by 1, 2 having count(*) > 1",
      );
      expect(doubled.rows).toEqual([]);
      const nodes = await pool.query("select count(*)::int as nodes from nodes");
      expect(nodes.rows).toEqual([{ nodes: HOSTS.length }]);
    } finally {
      await pool.end();
    }
  }
});
