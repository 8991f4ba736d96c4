import { rmSync } from "node:fs";
import { join } from "node:path";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ONBOARDING_STAGES } from "../../shared/workflow-status.ts";
import { findHistoryFaults } from "../support/claim-history.ts";
import { newHubFolder } from "../support/hub-state.ts";
import { type PostgresPair, pairPrograms, startPostgresPair } from "../support/postgres-pair.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts, seedSite } from "../support/seed-site.ts";
import { readCounters } from "../support/simulator-counters.ts";
import { until } from "../support/until.ts";

const HOSTS = demoHosts(4);
const DEPLOYING: ReadonlySet<string> = new Set(ONBOARDING_STAGES.slice(ONBOARDING_STAGES.indexOf("deploy_via_maas")));
const PATIENT = { timeoutMs: 240_000, everyMs: 300 };
const programs = await pairPrograms();
if (programs === null)
  process.stderr.write("SKIPPED: no PostgreSQL with pg_basebackup is installed (Debian package postgresql)\n");

describe.skipIf(programs === null)("two hubs on two PostgreSQL servers, of which the primary is killed", () => {
  const stateDir = newHubFolder("muster-failover-");
  let pair: PostgresPair;
  let rig: Rig;
  beforeAll(async () => {
    if (programs === null) return;
    pair = await startPostgresPair(programs, join(stateDir, "servers"));
    rig = await startRig({ stateDir, machines: HOSTS.length, speed: 30, hubs: 2, databaseUrl: pair.url });
  });
  afterAll(async () => {
    await rig?.stop();
    await pair?.stop();
    rmSync(stateDir, { recursive: true, force: true });
  });

  const readiness = () =>
    Promise.all(rig.hubs.map(async ({ url }) => (await fetch(`${url}/readyz`).catch(() => null))?.status ?? 0));

  it("a batch of onboardings goes on after the standby server is promoted, and nothing is lost or done twice", async () => {
    const site = await seedSite(rig.api, rig.maas, HOSTS);
    await rig.api.onboardBatch({ site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId, nodes: HOSTS });
    await until(
      "a host of the batch is at its deploy, and none is done",
      async () => {
        const batch = await rig.api.onboardings();
        expect(batch.filter(({ status }) => status === "completed")).toEqual([]);
        return batch.some(({ current_stage }) => DEPLOYING.has(current_stage)) ? true : undefined;
      },
      PATIENT,
    );
    const pids = rig.hubs.map((hub) => hub.pid());
    await pair.killPrimary();
    await until("both hubs say that they are not ready", async () =>
      (await readiness()).every((status) => status === 503) ? true : undefined,
    );
    await pair.promote();
    await until("both hubs are ready", async () =>
      (await readiness()).every((status) => status === 200) ? true : undefined,
    );
    await until(
      "all hosts are active",
      async () =>
        (await rig.api.nodes()).filter((node) => node.status === "active").length === HOSTS.length ? true : undefined,
      PATIENT,
    );

    expect(rig.hubs.map((hub) => hub.pid())).toEqual(pids);
    const counters = await readCounters(rig.maas.control);
    expect(Object.keys(counters.machines)).toHaveLength(HOSTS.length);
    for (const [machine, { commission, deploy, release }] of Object.entries(counters.machines))
      expect({ machine, commission, deploy, release }).toEqual({ machine, commission: 1, deploy: 1, release: 0 });
    expect((await rig.api.onboardings()).map((onboarding) => onboarding.status)).toEqual(HOSTS.map(() => "completed"));
    const pool = new Pool({ connectionString: pair.standbyUrl, max: 1 });
    try {
      expect(await findHistoryFaults(pool)).toEqual([]);
      const doubled = await pool.query(
        "select node_id, type from tasks where state = 'succeeded' group by 1, 2 having count(*) > 1",
      );
      expect(doubled.rows).toEqual([]);
    } finally {
      await pool.end();
    }
  }, 600_000);
});
