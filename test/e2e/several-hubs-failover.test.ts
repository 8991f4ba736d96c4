import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ONBOARDING_STAGES } from "../../shared/workflow-status.ts";
import { newHubFolder } from "../support/hub-state.ts";
import { expectBatchOutlived, startBatch, untilHubsAnswer } from "../support/hubs-over-an-outage.ts";
import { type PostgresPair, pairPrograms, startPostgresPair } from "../support/postgres-pair.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts } from "../support/seed-site.ts";
import { LONG_WAIT_MS, until } from "../support/until.ts";

const HOSTS = demoHosts(4);
const DEPLOYING: ReadonlySet<string> = new Set(ONBOARDING_STAGES.slice(ONBOARDING_STAGES.indexOf("deploy_via_maas")));
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

  it("a batch of onboardings goes on after the standby server is promoted, and nothing is lost or done twice", async () => {
    const batch = await startBatch(rig, HOSTS);
    await until(
      "a host of the batch is at its deploy, and none is done",
      async () => {
        const now = await rig.api.onboardings();
        expect(now.filter(({ status }) => status === "completed")).toEqual([]);
        return now.some(({ current_stage }) => DEPLOYING.has(current_stage)) ? true : undefined;
      },
      { timeoutMs: LONG_WAIT_MS, everyMs: 300 },
    );
    await pair.killPrimary();
    await untilHubsAnswer(rig, 503);
    await pair.promote();
    await untilHubsAnswer(rig, 200);
    await expectBatchOutlived(batch, pair.standbyUrl);
  });
});
