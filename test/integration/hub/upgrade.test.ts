import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { eq, sql } from "../../../hub/db/orm.ts";
import { readOnboarding } from "../../../hub/db/queries/onboardings.ts";
import { readWorkflow } from "../../../hub/db/queries/workflows.ts";
import { type Workflow as WorkflowRow, workflowEvents, workflows } from "../../../hub/db/schema/index.ts";
import { SiteClients } from "../../../hub/maas/site-clients.ts";
import { SECRET_PATHS } from "../../../hub/secrets/port.ts";
import { startWatcher } from "../../../hub/watcher/watcher.ts";
import { classifyError } from "../../../hub/workflows/classify-error.ts";
import { applyVerb } from "../../../hub/workflows/engine/apply-verb.ts";
import type { Verb } from "../../../hub/workflows/engine/recovery.ts";
import { startWorkflowRunner } from "../../../hub/workflows/engine/runner.ts";
import { workflowsOf } from "../../../hub/workflows/registry.ts";
import type { SiteId, WorkflowId } from "../../../shared/ids.ts";
import { Secret } from "../../../shared/secret.ts";
import { startMaasSimulator } from "../../fakes/maas/simulator.ts";
import { SITE_BMC_PASSWORD, SITE_BMC_USER } from "../../fakes/maas/state/site.ts";
import { createTestDatabase } from "../../support/database.ts";
import { quietLog } from "../../support/log.ts";
import { MemorySecrets } from "../../support/memory-secrets.ts";
import { NO_BMC } from "../../support/no-bmc.ts";
import { FIRST_BOOT, playAgent } from "../../support/onboarding-rig.ts";
import { until } from "../../support/until.ts";
import { loadRecord, readRecord, regionFile } from "../../upgrade/load-record.ts";

const versions = readdirSync(new URL("../../upgrade/records", import.meta.url)).map((file) =>
  file.replace(".json.gz", ""),
);
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Starts hubs of the present version on what the old version left: its database, its simulated region and its secrets. */
async function takeOver(version: string) {
  const record = readRecord(version);
  const test = await createTestDatabase();
  closers.push(() => test.drop());
  await loadRecord(test, record);
  const region = regionFile(record);
  closers.push(() => region.remove());
  const maas = await startMaasSimulator({ stateFile: region.path, speed: 1e5 });
  closers.push(() => maas.close());
  const secrets = new MemorySecrets();
  for (const [path, secret] of Object.entries(record.secrets)) await secrets.write(path, secret);
  const { db, inTx } = test.database;
  const sites = await db.execute<{ id: SiteId }>(sql`update maas_sites set api_base_url = ${maas.url} returning id`);
  for (const { id } of sites.rows) {
    await secrets.write(SECRET_PATHS.maasToken(id), { token: maas.apiKey });
    await secrets.write(SECRET_PATHS.defaultPower(id), { user: SITE_BMC_USER, pass: SITE_BMC_PASSWORD });
    await secrets.write(SECRET_PATHS.deployPassword(id), { password: "of the site" });
  }
  const clients = new SiteClients();
  const maasOf = async (siteId: SiteId) => clients.client({ siteId, baseUrl: maas.url }, new Secret(maas.apiKey));
  const kinds = workflowsOf({
    db,
    inTx,
    log: quietLog,
    secrets,
    maas: maasOf,
    bmc: NO_BMC,
    firstBoot: FIRST_BOOT,
    countersign: () => {
      throw new Error("no stage of this test signs a record");
    },
    checkAnswers: () => Promise.reject(new Error("no stage of this test checks answers")),
  });
  const start = () => {
    for (const hubId of [randomUUID(), randomUUID()]) {
      const runner = startWorkflowRunner({
        db,
        inTx,
        hubId,
        workflows: kinds,
        classifyError,
        log: quietLog,
        pollMs: 50,
      });
      closers.push(() => runner.close());
    }
    const watch = { pollIntervalMs: 50, sweepIntervalMs: 5000, log: quietLog, hubId: randomUUID() };
    const watcher = startWatcher({ db, inTx, clientFor: maasOf, ...watch });
    closers.push(() => watcher.close());
  };
  const rows = await db.select().from(workflows);
  const ended = async (ids: readonly WorkflowId[]): Promise<WorkflowRow[]> =>
    until(
      "every onboarding to end",
      async () => {
        // The test simulates the agents of all onboardings, because an onboarding that waits for its agent occupies a place of the site.
        for (const { id } of rows) await playAgent(test, maas, id);
        const now = await db
          .select()
          .from(workflows)
          .where(sql`id = any(${sql.param([...ids])}::uuid[])`);
        return now.every((row) => row.completedAt !== null) ? now : undefined;
      },
      { timeoutMs: 170_000, everyMs: 200 },
    );
  const verb = (workflowId: WorkflowId, which: Verb) =>
    inTx((tx) => applyVerb(tx, kinds, { workflowId, verb: which, actor: "ann", role: "admin", reason: "upgraded" }));
  const counters = (row: WorkflowRow) =>
    maas.sim.region.state.counters[(row.state as { maas_system_id: string }).maas_system_id];
  return { db, rows, start, ended, verb, counters };
}

describe.each(versions)("the state that a dead hub of version %s left", (version) => {
  it("continues from every stage to the end, and nothing is done twice", async () => {
    const { db, rows, start, ended, counters } = await takeOver(version);
    const open = rows.filter((row) => row.status === "running" || row.status === "pending");
    const [done, ...others] = rows.filter((row) => row.status === "completed");
    if (done === undefined) throw new Error(`the record of ${version} has no completed onboarding`);
    expect(others).toEqual([]);
    // An onboarding that the old version completed has passed all stages of the old version. The record of an old version of Muster lacks the stages
    // that later versions have added.
    const passed = await db.select().from(workflowEvents).where(eq(workflowEvents.workflowId, done.id));
    const stages = [...new Set(passed.map(({ stage }) => stage))].sort();
    expect([...new Set(open.map((row) => row.stage))].sort()).toEqual(stages);
    expect(open.filter((row) => row.leaseOwner !== null).length).toBeGreaterThan(stages.length);
    start();
    for (const row of await ended(open.map((one) => one.id))) {
      expect(row, row.failureMessage ?? "").toMatchObject({ status: "completed" });
      expect(counters(row)).toMatchObject({ commission: 1, deploy: 1, release: 0 });
    }
    expect(await readWorkflow(db, done.id), "left alone").toEqual(done);
  });

  it("finishes its compensations, and its failed workflows complete by the recommended verb", async () => {
    const { db, rows, start, ended, verb, counters } = await takeOver(version);
    start();
    const undoing = rows.filter((row) => row.status === "compensating").map((row) => row.id);
    expect(undoing).toHaveLength(1);
    for (const row of await ended(undoing)) {
      expect(row).toMatchObject({ status: "failed_retryable", failureCode: "deploy_failed" });
      expect(counters(row)).toMatchObject({ deploy: 1, release: 1 });
    }
    const failed = [...undoing, ...rows.filter((row) => row.status.startsWith("failed_")).map((row) => row.id)];
    expect(failed.length).toBeGreaterThan(2);
    for (const id of failed) {
      const detail = await readOnboarding(db, id);
      expect(detail?.next_verb).not.toBeNull();
      await verb(id, detail?.next_verb ?? "retry");
    }
    for (const row of await ended(failed)) expect(row.status, row.failureMessage ?? "").toBe("completed");
  });
});
