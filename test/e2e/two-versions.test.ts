/**
 * A hub of an older version and a hub of this version on one database, as during an upgrade without stopping (docs/operate.md). The older version is
 * the one before the newest database migration, from the git history, or the checkout at MUSTER_TEST_PREVIOUS_VERSION.
 */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HubApi } from "../support/hub-api.ts";
import { newHubFolder } from "../support/hub-state.ts";
import { expectBatchOutlived, startBatch } from "../support/hubs-over-an-outage.ts";
import { checkOut, findPreviousVersion } from "../support/previous-version.ts";
import { type RestartablePostgres, startRestartablePostgres } from "../support/restartable-postgres.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts } from "../support/seed-site.ts";

const HOSTS = demoHosts(6);
const given = process.env["MUSTER_TEST_PREVIOUS_VERSION"];
const { commit, missing } = await findPreviousVersion();
const isMissing = given === undefined && missing !== undefined;
if (isMissing) process.stderr.write(`SKIPPED: two versions beside each other: ${missing}\n`);

const migrationsOf = (checkout: string): number =>
  readdirSync(join(checkout, "hub/db/migrations")).filter((name) => name.endsWith(".sql")).length;

describe.skipIf(isMissing)("a hub of an older version beside a hub of this version", () => {
  const stateDir = newHubFolder("muster-two-versions-");
  let postgres: RestartablePostgres;
  let rig: Rig;
  beforeAll(async () => {
    const previous = given ?? join(stateDir, "previous");
    if (given === undefined) {
      await checkOut(commit ?? "", previous);
      expect(migrationsOf(previous), "the older version lacks the newest migration").toBeLessThan(migrationsOf("."));
    }
    postgres = await startRestartablePostgres(join(stateDir, "server"));
    rig = await startRig({
      stateDir,
      machines: HOSTS.length,
      speed: 30,
      hubs: 2,
      databaseUrl: postgres.url,
      firstHubFrom: previous,
    });
  });
  afterAll(async () => {
    await rig?.stop();
    await postgres?.stop();
    rmSync(stateDir, { recursive: true, force: true });
  });

  it("carry out a batch of onboardings together, and nothing is lost or done twice", async () => {
    // Only the new hub answers the test, because the test reads answers by the schemas of this version.
    const api = new HubApi(rig.hubs[1]?.url ?? "", readFileSync(rig.adminTokenFile, "utf8").trim());
    const batch = await startBatch({ ...rig, api }, HOSTS);
    await expectBatchOutlived(batch, postgres.url);
    const pool = new Pool({ connectionString: postgres.url, max: 1 });
    try {
      const { rows } = await pool.query(
        "select count(distinct hub_id)::int as hubs from workflow_events where hub_id is not null",
      );
      expect(rows, "hubs that ran stages").toEqual([{ hubs: 2 }]);
    } finally {
      await pool.end();
    }
  });
});
