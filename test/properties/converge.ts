import { expect } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { isEnded } from "../../hub/db/queries/workflows.ts";
import { type Workflow as WorkflowRow, workflowSubjects, workflows } from "../../hub/db/schema/index.ts";
import { type Failure, type FailureClass, ruleOf } from "../../shared/failures.ts";
import { type Driver, plainly } from "./drive.ts";
import { countedOf, machineOf, type Scenario, type Stagecraft, type Subject, systemIdOf } from "./scenarios.ts";

/** A fault that a test plants at one stage of a workflow. */
export interface Trouble {
  /** `runWithTrouble` calls `arm` once, before the first run of the stage. Returns false if the fault cannot happen there. */
  arm(craft: Stagecraft, row: WorkflowRow): boolean;
  /**
   * `runWithTrouble` calls `lift` when the workflow has left the stage of the fault or has ended. `lift` may end the fault, and returns true if the
   * fault did happen.
   */
  lift(craft: Stagecraft, row: WorkflowRow): boolean;
  /** The failure classes with which the disturbed workflow may end, or none if it must complete by itself. */
  readonly endsIn: readonly FailureClass[];
}

export interface Told {
  readonly subject: Subject;
  readonly driver: Driver;
  /** True if the planted fault happened while the workflow ran. */
  readonly met: boolean;
  readonly end: WorkflowRow;
}

/**
 * Runs a workflow stage by stage to its end, with a fault at the given stage. If the stage ends without its fault, the function abandons the
 * workflow, because another test covers undisturbed workflows.
 */
export async function runWithTrouble(
  craft: Stagecraft,
  scenario: Scenario,
  stage: string,
  trouble: Trouble,
): Promise<Told> {
  const { subject, driver } = await craft.start(scenario);
  let phase = "before" as "before" | "during" | "after";
  let met = false;
  const look = (row: WorkflowRow): void => {
    if (phase === "before" && row.stage === stage && row.status === "running") {
      phase = trouble.arm(craft, row) ? "during" : "after";
      return;
    }
    if (phase !== "during" || (row.stage === stage && !isEnded(row.status))) return;
    phase = "after";
    met = trouble.lift(craft, row);
  };
  const end = await driver.drive(subject.id, (row) => {
    look(row);
    return phase === "after" && !met ? null : plainly;
  });
  if (phase === "during") met = trouble.lift(craft, end);
  expect(phase, "the stage was not reached").not.toBe("before");
  if (!met) await leave(craft, end);
  return { subject, driver, met, end };
}

export interface ToldOfEach extends Told {
  /** The stages of the workflow at which the planted fault did happen. */
  readonly metAt: readonly string[];
}

/**
 * Runs a workflow to its end, with a fault once at each of the given stages. `runWithTroubleAtEach` suits only faults without a failure, because a
 * failed workflow would not reach its later stages.
 */
export async function runWithTroubleAtEach(
  craft: Stagecraft,
  scenario: Scenario,
  stages: readonly string[],
  trouble: Trouble,
): Promise<ToldOfEach> {
  const { subject, driver } = await craft.start(scenario);
  const entered = new Set<string>();
  const metAt: string[] = [];
  let armedAt: string | null = null;
  const look = (row: WorkflowRow): void => {
    if (armedAt !== null && (row.stage !== armedAt || isEnded(row.status))) {
      if (trouble.lift(craft, row)) metAt.push(armedAt);
      armedAt = null;
    }
    if (armedAt !== null || entered.has(row.stage) || row.status !== "running" || !stages.includes(row.stage)) return;
    entered.add(row.stage);
    if (trouble.arm(craft, row)) armedAt = row.stage;
  };
  const end = await driver.drive(subject.id, (row) => {
    look(row);
    return plainly;
  });
  look(end);
  expect([...entered].toSorted(), "every stage was reached").toEqual([...stages].toSorted());
  return { subject, driver, end, met: metAt.length > 0, metAt };
}

async function leave(craft: Stagecraft, { id, status, failureMessage }: WorkflowRow): Promise<void> {
  expect(status, failureMessage ?? "").toMatch(/^(running|completed)$/);
  const { db } = craft.rig.test.database;
  await db.delete(workflowSubjects).where(eq(workflowSubjects.workflowId, id));
  await db
    .update(workflows)
    .set({ status: "cancelled", completedAt: sql`now()`, leaseOwner: null, leaseUntil: null })
    .where(eq(workflows.id, id));
}

/** Expects that a failed workflow's row says everything that an operator needs (lifecycle 4.12). */
export function expectExplained(craft: Stagecraft, row: WorkflowRow, endsIn: readonly FailureClass[]): void {
  expect(row.status).toMatch(/^failed_/);
  expect(endsIn, `${row.failureClass}/${row.failureCode}: ${row.failureMessage}`).toContain(row.failureClass);
  expect(row.failureCode).not.toBeNull();
  expect((row.failureMessage ?? "").length).toBeGreaterThan(20);
  expect((row.nextAction ?? "").length).toBeGreaterThan(20);
  const systemId = systemIdOf(row);
  if (systemId !== undefined) expect(row.evidence).toMatchObject({ maas_system_id: systemId });
  const seen = machineOf(craft.rig, row);
  const name = (row.evidence as { last_maas_status?: unknown }).last_maas_status;
  if (seen !== undefined && row.failureClass === "state_ambiguity" && name !== undefined) expect(name).not.toBe("");
}

export const nextVerbOf = (row: WorkflowRow) =>
  ruleOf({ class: row.failureClass, code: row.failureCode, evidence: row.evidence } as Failure).nextVerb;

/** Recovers a workflow as an operator would: first by the recommended verb, then by a clean restart. */
export async function recover(told: Told): Promise<WorkflowRow> {
  const { driver, subject } = told;
  let row = told.end;
  for (let tries = 0; tries < 3 && row.status.startsWith("failed_"); tries += 1) {
    await driver.verb(subject.id, tries === 0 ? nextVerbOf(row) : "restart_clean");
    row = await driver.drive(subject.id);
  }
  return row;
}

/** Expects that the workflow completed with no more commissions, and no more deploys that were not taken back, than an undisturbed workflow. */
export async function expectConverged(
  craft: Stagecraft,
  scenario: Scenario,
  { subject, driver }: Told,
  end: WorkflowRow,
  released: "by us" | "by others too" = "by us",
): Promise<void> {
  expect(["completed", "reconciled"], `${end.failureMessage}\n${await driver.story(subject.id)}`).toContain(end.status);
  await scenario.expectEnd(craft.rig, subject);
  const { commission, deploy, release, abort } = countedOf(craft.rig, end);
  expect(commission, await driver.story(subject.id)).toBeLessThanOrEqual(scenario.outside.commission);
  // The counters of the simulated MAAS contain the hub's releases, but not a release by another user.
  const kept = deploy - release - abort;
  const wanted = scenario.outside.deploy - scenario.outside.release - scenario.outside.abort;
  expect(kept, `deploys that were not taken back\n${await driver.story(subject.id)}`).toBeGreaterThanOrEqual(wanted);
  expect(kept, await driver.story(subject.id)).toBeLessThanOrEqual(released === "by us" ? wanted : wanted + 1);
}

/** Counts a test file's cases and prints at the end in how many cases the fault happened. */
export class Tally {
  #met = 0;
  #notMet = 0;
  count(met: boolean): void {
    if (met) this.#met += 1;
    else this.#notMet += 1;
  }
  print(what: string): void {
    const all = this.#met + this.#notMet;
    console.log(`${what}: ${all} generated fault cases, ${this.#met} met, ${this.#notMet} with nothing to meet`);
  }
}
