/**
 * Records what a hub of this version leaves when it dies at work: its database and its simulated region. An engineer runs `npm run upgrade:record`
 * once for each release, before Muster's version changes. `test/integration/hub/upgrade.test.ts` continues from the recorded state with later
 * versions of Muster (decision W3).
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { eq, sql } from "../../hub/db/orm.ts";
import { type ClaimedWorkflow, claimWorkflows, isEnded, readWorkflow } from "../../hub/db/queries/workflows.ts";
import { workflows } from "../../hub/db/schema/index.ts";
import { classifyError } from "../../hub/workflows/classify-error.ts";
import { execute, type Step } from "../../hub/workflows/engine/execute.ts";
import { commitStep } from "../../hub/workflows/engine/runner.ts";
import type { Workflow } from "../../hub/workflows/engine/workflow.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { VERSION } from "../../shared/version.ts";
import { ONBOARDING_STAGES } from "../../shared/workflow-status.ts";
import type { Plan } from "../fakes/maas/state/model.ts";
import startDatabaseServer from "../support/database-server.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import type { UpgradeRecord } from "./upgrade-record.ts";

const HERE = new URL(".", import.meta.url).pathname;
const JOURNAL = join(HERE, "../../hub/db/migrations/meta/_journal.json");
const DEAD_HUB = randomUUID();

type At = (row: ClaimedWorkflow) => boolean;

class Recorder {
  readonly #rig: OnboardingRig;
  readonly #kinds: readonly Workflow[];
  #boxes = 0;

  constructor(rig: OnboardingRig) {
    this.#rig = rig;
    this.#kinds = workflowsOf(rig.services);
  }

  async #claim(id: WorkflowId): Promise<ClaimedWorkflow> {
    const { db } = this.#rig.services;
    const free = { wakeAt: sql`now()`, leaseOwner: null, leaseUntil: null };
    await db.update(workflows).set(free).where(eq(workflows.id, id));
    const known = this.#kinds.flatMap((kind) => kind.knownNames.map((name) => `${kind.kind}/${name}`));
    const rows = await claimWorkflows(db, { hubId: DEAD_HUB, known, limit: 100, leaseSeconds: 5 });
    const row = rows.find((one) => one.id === id);
    if (row === undefined) throw new Error(`workflow ${id} cannot be claimed`);
    return row;
  }

  async #step(row: ClaimedWorkflow): Promise<Step & { readonly workflow: Workflow }> {
    const workflow = this.#kinds.find((kind) => kind.kind === row.kind);
    if (workflow === undefined) throw new Error(`no kind ${row.kind}`);
    const step = await execute({ workflow, row, signal: new AbortController().signal, classifyError });
    if (step === null) throw new Error(`the run of ${row.stage} did not count`);
    return { ...step, workflow };
  }

  async #start(): Promise<WorkflowId> {
    this.#boxes += 1;
    const { id } = await this.#rig.start(this.#boxes);
    await this.#rig.services.db.update(workflows).set({ status: "running" }).where(eq(workflows.id, id));
    return id;
  }

  /**
   * Runs stage after stage, until the hub has claimed a workflow row that `stop` accepts or the workflow ends. The dying hub keeps its claim of the
   * last workflow row.
   */
  async #drive(id: WorkflowId, stop: At, agent = true): Promise<ClaimedWorkflow | null> {
    for (let looks = 0; looks < 3000; looks += 1) {
      const before = await readWorkflow(this.#rig.services.db, id);
      if (before === null || isEnded(before.status)) return null;
      if (agent) await this.#rig.playAgent(id);
      const row = await this.#claim(id);
      if (stop(row)) return row;
      await this.#commit(row);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    throw new Error("the onboarding never came to where it was to stop");
  }

  async #commit(row: ClaimedWorkflow): Promise<void> {
    const step = await this.#step(row);
    await this.#rig.services.inTx((tx) => commitStep(tx, step.workflow, row, step));
  }

  /** Leaves an onboarding at the given stage, claimed by a hub that died before the stage acted or before its commit. */
  async diesAt(stage: string, acted: boolean): Promise<void> {
    const row = await this.#drive(await this.#start(), (claimed) => claimed.stage === stage);
    if (acted && row !== null) await this.#step(row);
  }

  async completes(): Promise<void> {
    await this.#drive(await this.#start(), () => false);
  }

  /** Runs an onboarding until it fails or compensates, because its machine fails in MAAS in the way of `plan`. */
  async suffers(plan: Partial<Plan>): Promise<void> {
    const id = await this.#start();
    const row = await this.#drive(id, (claimed) => claimed.stage === "commission_node");
    const { maas_system_id: systemId } = (row?.state ?? {}) as { maas_system_id?: string };
    if (systemId === undefined) throw new Error("the onboarding has no machine at commission_node");
    this.#rig.maas.sim.region.state.plans[systemId] = { commission: [], deploy: [], ...plan };
    await this.#drive(id, (claimed) => claimed.status === "compensating");
  }

  /** Leaves an onboarding whose agent never connects, at the deadline of the stage that waits for the agent. */
  async losesItsAgent(): Promise<void> {
    const id = await this.#start();
    await this.#drive(id, (claimed) => claimed.stage === "ensure_hardware_sync_configured", false);
    const late = { stageDeadline: sql`now() - interval '1 second'` };
    await this.#rig.services.db.update(workflows).set(late).where(eq(workflows.id, id));
    await this.#commit(await this.#claim(id));
  }

  async waits(): Promise<void> {
    this.#boxes += 1;
    await this.#rig.start(this.#boxes);
  }
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

async function record(): Promise<void> {
  const rig = await startOnboardingRig({ machines: 40 });
  try {
    const recorder = new Recorder(rig);
    for (const stage of ONBOARDING_STAGES) {
      await recorder.diesAt(stage, false);
      await recorder.diesAt(stage, true);
    }
    await recorder.completes();
    await recorder.suffers({ commission: ["fail"] });
    await recorder.suffers({ deploy: ["install_failure"] });
    await recorder.losesItsAgent();
    await recorder.waits();
    await withoutFirstBoots(rig);
    const journal = JSON.parse(readFileSync(JOURNAL, "utf8")) as { entries: { tag: string }[] };
    const kept: UpgradeRecord = {
      version: VERSION,
      recordedAt: new Date().toISOString(),
      migrations: journal.entries.map((entry) => entry.tag),
      tables: await tablesOf(rig),
      secrets: Object.fromEntries([...rig.secrets.entries].filter(([, secret]) => "user_data" in secret)),
      region: rig.maas.sim.region.state as unknown as UpgradeRecord["region"],
    };
    mkdirSync(join(HERE, "records"), { recursive: true });
    writeFileSync(join(HERE, "records", `${VERSION}.json.gz`), gzipSync(JSON.stringify(kept), { level: 9 }));
  } finally {
    await rig.close();
  }
}

const stopServer = await startDatabaseServer();
try {
  await record();
} finally {
  await stopServer();
}
