/**
 * Records what a hub of this version leaves when it dies at work: its database and its simulated region. An engineer runs `npm run upgrade:record`
 * once for each release, before Muster's version changes, and after each new kind of workflow or stage. `test/integration/hub/upgrade.test.ts`
 * continues from the recorded state with later versions of Muster (decision W3).
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { eq, sql } from "../../hub/db/orm.ts";
import { isEnded, readWorkflow } from "../../hub/db/queries/workflows.ts";
import { maasSiteProfiles, type Workflow as WorkflowRow, workflows } from "../../hub/db/schema/index.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { VERSION } from "../../shared/version.ts";
import type { Plan } from "../fakes/maas/state/model.ts";
import { plainly } from "../properties/drive.ts";
import {
  type Outside,
  SCENARIOS,
  type Scenario,
  STAGE_CASES,
  type Stagecraft,
  setStage,
  systemIdOf,
} from "../properties/scenarios.ts";
import startDatabaseServer from "../support/database-server.ts";
import type { OnboardingRig } from "../support/onboarding-rig.ts";
import type { UpgradeRecord } from "./upgrade-record.ts";

const HERE = new URL(".", import.meta.url).pathname;
const JOURNAL = join(HERE, "../../hub/db/migrations/meta/_journal.json");

class Recorder {
  readonly #craft: Stagecraft;
  readonly outside: Record<WorkflowId, Outside> = {};

  constructor(craft: Stagecraft) {
    this.#craft = craft;
  }

  get #db() {
    return this.#craft.rig.services.db;
  }

  async #start(scenario: Scenario) {
    const started = await this.#craft.start(scenario);
    this.outside[started.subject.id] = scenario.outside;
    return started;
  }

  /** Leaves a workflow at the given stage, claimed by a hub that died after the stage had acted and before its commit. */
  async diesAt(scenario: Scenario, stage: string): Promise<void> {
    const { subject, driver } = await this.#start(scenario);
    const row = await driver.drive(subject.id, (now) => (now.stage === stage ? null : plainly));
    if (row.stage !== stage || isEnded(row.status)) throw new Error(`${scenario.name} never came to ${stage}`);
    await (await driver.claim(subject.id)).run();
  }

  async completes(scenario: Scenario): Promise<void> {
    const { subject, driver } = await this.#start(scenario);
    const { status } = await driver.drive(subject.id);
    if (status !== "completed") throw new Error(`${scenario.name} ended ${status}`);
  }

  async waits(scenario: Scenario): Promise<void> {
    await this.#start(scenario);
  }

  /** Leaves a workflow at its middle stage, where a hub died while an operator's cancel waited for the hub's run to end. */
  async isCancelled(scenario: Scenario): Promise<void> {
    const middle = scenario.stages[Math.floor(scenario.stages.length / 2)];
    const { subject, driver } = await this.#start(scenario);
    await driver.drive(subject.id, (now) => (now.stage === middle ? null : plainly));
    await driver.claim(subject.id);
    await driver.verb(subject.id, "cancel");
  }

  /**
   * Leaves a workflow whose agent never answers, after the deadline of the first stage that waits. A stage that waits only for MAAS may find at the
   * deadline that MAAS is done, and go on.
   */
  async expires(scenario: Scenario): Promise<void> {
    const { subject, driver } = await this.#start(scenario);
    let stage = "";
    await until(this.#db, subject.id, async (row) => {
      const late = { stageDeadline: sql`now() - interval '1 second'` };
      if (row.stage === stage) await this.#db.update(workflows).set(late).where(eq(workflows.id, row.id));
      stage = row.status === "pending" ? "" : row.stage;
      await driver.step(subject.id);
    });
  }

  /** Runs an onboarding until it fails or compensates, because its machine fails in MAAS in the way of `plan`. */
  async suffers(scenario: Scenario, plan: Partial<Plan>): Promise<void> {
    const { subject, driver } = await this.#start(scenario);
    const { plans } = this.#craft.rig.maas.sim.region.state;
    await driver.drive(subject.id, (row) => {
      const systemId = systemIdOf(row);
      if (row.status === "compensating") return null;
      if (systemId !== undefined && row.stage === "commission_node")
        plans[systemId] = { commission: [], deploy: [], ...plan };
      return plainly;
    });
  }
}

/** Calls `step` until the workflow compensates or has ended. */
async function until(
  db: OnboardingRig["services"]["db"],
  id: WorkflowId,
  step: (row: WorkflowRow) => Promise<void>,
): Promise<void> {
  for (let steps = 0; steps < 500; steps += 1) {
    const row = await readWorkflow(db, id);
    if (row === null || row.status === "compensating" || isEnded(row.status)) return;
    await step(row);
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error(`workflow ${id} never ended`);
}

async function tablesOf(rig: OnboardingRig): Promise<UpgradeRecord["tables"]> {
  const { db } = rig.services;
  const names = await db.execute<{ name: string }>(
    sql`select tablename as name from pg_tables where schemaname = 'public' order by 1`,
  );
  const tables: Record<string, unknown[]> = {};
  for (const { name } of names.rows) {
    const all = await db.execute<{ rows: unknown[] }>(
      sql`select coalesce(json_agg(t), '[]') as rows from ${sql.identifier(name)} t`,
    );
    const rows = all.rows[0]?.rows ?? [];
    if (rows.length > 0) tables[name] = rows;
  }
  return tables;
}

const FIRST_BOOT = Buffer.from(
  "#!/bin/sh\n# What a host was given at first boot; a record keeps none of the real ones.\n",
).toString("base64");

/** Replaces the stored user data of all hosts by a text without secrets, because user data contains enrollment tokens. */
async function withoutFirstBoots(rig: OnboardingRig): Promise<void> {
  const sha256 = createHash("sha256").update(FIRST_BOOT).digest("hex");
  for (const [path, secret] of rig.secrets.entries) {
    if ("user_data" in secret) rig.secrets.entries.set(path, { user_data: FIRST_BOOT });
  }
  await rig.services.db.execute(sql`
    update workflows set state = jsonb_set(state, '{user_data_sha256}', to_jsonb(${sha256}::text))
    where state ? 'user_data_sha256'`);
  for (const machine of rig.maas.sim.region.state.machines) {
    if (machine.userData !== null) machine.userData = FIRST_BOOT;
  }
}

/**
 * The first scenario of the kind replaces a scenario with a power cycle, because the boots of its simulated host exist only in the memory of the test
 * that started it. The first scenario passes through the same stages.
 */
const recordable = (scenario: Scenario): Scenario =>
  scenario.needsDeployedMachine === true
    ? (SCENARIOS.find(({ kind }) => kind === scenario.kind) ?? scenario)
    : scenario;

/** Records each stage of each kind of workflow, and for each kind a workflow that has not begun, one that fails, one that is cancelled and one that is done. */
async function recordAll(recorder: Recorder): Promise<void> {
  for (const { scenario, stage } of STAGE_CASES) await recorder.diesAt(recordable(scenario), stage);
  for (const scenario of new Map(SCENARIOS.toReversed().map((one) => [one.kind, one])).values()) {
    await recorder.completes(scenario);
    await recorder.expires(scenario);
    await recorder.isCancelled(scenario);
    await recorder.waits(scenario);
    if (scenario.kind !== "onboard") continue;
    await recorder.suffers(scenario, { commission: ["fail"] });
    await recorder.suffers(scenario, { deploy: ["install_failure"] });
  }
}

async function record(): Promise<void> {
  const craft = await setStage(150);
  const { rig } = craft;
  try {
    const places = { batchMaxParallel: 1000, deployMaxParallel: 1000 };
    await rig.services.db.update(maasSiteProfiles).set(places);
    const recorder = new Recorder(craft);
    await recordAll(recorder);
    await withoutFirstBoots(rig);
    await rig.services.db.execute(
      sql`update workflows set lease_until = now() + interval '5 seconds' where lease_owner is not null`,
    );
    const journal = JSON.parse(readFileSync(JOURNAL, "utf8")) as { entries: { tag: string }[] };
    const migrations = journal.entries.map((entry) => entry.tag);
    // The region's many random nonces are large, and prevent only that a request is sent twice.
    const region = { ...rig.maas.sim.region.state, nonces: {} };
    write({
      version: VERSION,
      recordedAt: new Date().toISOString(),
      migrations,
      tables: await tablesOf(rig),
      secrets: Object.fromEntries([...rig.secrets.entries].filter(([, secret]) => "user_data" in secret)),
      region: region as unknown as UpgradeRecord["region"],
      outside: recorder.outside,
    });
  } finally {
    await rig.close();
  }
}

/** Names the record by the version and the number of its last migration, so that a record with other tables replaces no earlier record. */
function write(record: UpgradeRecord): void {
  const text = JSON.stringify(record);
  // The rows of the workflows are much alike, and a large window finds what they share.
  const params = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS };
  const tables = /^\d+/.exec(record.migrations.at(-1) ?? "")?.[0] ?? "";
  mkdirSync(join(HERE, "records"), { recursive: true });
  writeFileSync(join(HERE, "records", `${record.version}-${tables}.json.br`), brotliCompressSync(text, { params }));
}

const stopServer = await startDatabaseServer();
try {
  await record();
} finally {
  await stopServer();
}
