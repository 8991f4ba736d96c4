import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { newHubFolder } from "../support/hub-state.ts";
import { expectBatchOutlived, startBatch, untilHubsAnswer } from "../support/hubs-over-an-outage.ts";
import { type PostgresProxy, startPostgresProxy } from "../support/postgres-proxy.ts";
import { type RestartablePostgres, startRestartablePostgres } from "../support/restartable-postgres.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts } from "../support/seed-site.ts";
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

  it("nothing is lost and nothing is written twice, with the same two processes to the end", async () => {
    const batch = await startBatch(rig, HOSTS);

    proxy.decide = (moment) => {
      if (Math.random() * (moment === "commit" ? 12 : 80) >= 1) return "pass";
      return Math.random() < 0.5 ? "lost_before" : "lost_after";
    };
    for (const how of ["fast", "immediate", "kill"] as const) {
      await pause(1_500);
      proxy.cutAll();
      await pause(1_500);
      await postgres.restart(how, () => untilHubsAnswer(rig, 503));
    }
    await pause(2_000);
    const { commit, statement } = proxy.met;
    await until("each kind of loss to be met", () =>
      commit.lost_before > 0 && commit.lost_after > 0 && statement.lost_before + statement.lost_after > 0
        ? true
        : undefined,
    );
    proxy.decide = () => "pass";
    await untilHubsAnswer(rig, 200);
    await expectBatchOutlived(batch, postgres.url);
  });
});
