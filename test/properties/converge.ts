import { expect } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { isEnded } from "../../hub/db/queries/workflows.ts";
import { type Workflow as WorkflowRow, workflowSubjects, workflows } from "../../hub/db/schema/index.ts";
import { type Failure, type FailureClass, ruleOf } from "../../shared/failures.ts";
import { type Driver, plainly } from "./drive.ts";
import { countedOf, machineOf, type Scenario, type Stagecraft, type Subject, systemIdOf } from "./scenarios.ts";

export interface Trouble {
  /**
   * `runWithTroubleAtEach` calls `arm` once for each stage, before the stage's first run. `arm` returns false if the fault cannot happen at the
   * workflow's stage.
   */
  arm(craft: Stagecraft, row: WorkflowRow): boolean | Promise<boolean>;
  /**
   * `runWithTroubleAtEach` calls `lift` when the workflow has left the stage of the fault or has ended. `lift` may end the fault, and returns true if
   * the fault did happen.
   */
  lift(craft: Stagecraft, row: WorkflowRow): boolean;
  /**
   * The failure classes with which the disturbed workflow may end, or null for any failure class. If `endsIn` is empty, the workflow must complete by
   * itself.
   */
  readonly endsIn: readonly FailureClass[] | null;
}

/** A driven workflow, and the row with which the workflow ended. */
export interface Told {
  readonly subject: Subject;
  readonly driver: Driver;
  readonly end: WorkflowRow;
}

export interface ToldOfEach extends Told {
  /** The stages of the workflow at which the planted fault did happen. */
  readonly metAt: readonly string[];
  /** The number of verbs that the operator used in the whole run. */
  readonly verbs: number;
}

/** What an operator does about a workflow that failed because of a fault. */
export interface Operator {
  /** The number of verbs that the operator may use after each fault. */
  readonly mostVerbs: number;
  /** Called once after each fault that made the workflow fail, before the operator's first verb. */
  readonly whenFailed?: (told: Told) => Promise<void>;
  /** True if every fault must make the workflow fail, so that the test plants the next fault only after the failure. */
  readonly mustFail?: true;
}

/** No operator helps: every workflow must continue by itself after the fault. */
const NOBODY: Operator = { mostVerbs: 0 };
/** An operator who uses the verb that the failure recommends, and then clean restarts. */
export const OPERATOR: Operator = { mostVerbs: 3 };

/**
 * Starts a workflow and lets the workflow end, with the fault once at each of the given stages. A fault begins before the first run of its stage, and
 * ends when the workflow leaves the stage or fails. After a failure, the operator's verbs continue the workflow, up to the fault at the next stage.
 * If the fault happens at no stage, `runWithTroubleAtEach` abandons the workflow, because another test covers undisturbed workflows.
 */
export async function runWithTroubleAtEach(
  craft: Stagecraft,
  scenario: Scenario,
  stages: readonly string[],
  trouble: Trouble,
  operator = NOBODY,
): Promise<ToldOfEach> {
  const { subject, driver } = await craft.start(scenario);
  const entered = new Set<string>();
  const metAt: string[] = [];
  let armedAt: string | null = null;
  let mustFail = false;
  let verbs = 0;
  let allVerbs = 0;
  const look = async (row: WorkflowRow): Promise<void> => {
    if (armedAt !== null && (row.stage !== armedAt || isEnded(row.status))) {
      if (trouble.lift(craft, row)) metAt.push(armedAt);
      armedAt = null;
    }
    if (armedAt !== null || mustFail || entered.has(row.stage)) return;
    if (row.status !== "running" || !stages.includes(row.stage)) return;
    entered.add(row.stage);
    if (!(await trouble.arm(craft, row))) return;
    armedAt = row.stage;
    mustFail = operator.mustFail === true;
    verbs = 0;
  };
  const metNothing = (): boolean => entered.size === stages.length && armedAt === null && metAt.length === 0;
  const untilEnded = async (): Promise<WorkflowRow> => {
    const row = await driver.drive(subject.id, async (now) => {
      await look(now);
      return metNothing() ? null : plainly;
    });
    await look(row);
    return row;
  };
  let end = await untilEnded();
  if (metNothing()) await leave(craft, end);
  while (end.status.startsWith("failed_") && verbs < operator.mostVerbs) {
    if (verbs === 0) {
      expect(end).toMatchObject({ failureCode: expect.any(String), nextAction: expect.any(String) });
      if (trouble.endsIn !== null) expectExplained(craft, end, trouble.endsIn);
      mustFail = false;
      await operator.whenFailed?.({ subject, driver, end });
    }
    await driver.verb(subject.id, verbs === 0 ? nextVerbOf(end) : "restart_clean");
    verbs += 1;
    allVerbs += 1;
    end = await untilEnded();
  }
  const told = await driver.story(subject.id);
  expect(mustFail, `the workflow never failed\n${told}`).toBe(false);
  expect([...entered].toSorted(), `every stage was reached\n${told}`).toEqual([...stages].toSorted());
  return { subject, driver, end, metAt, verbs: allVerbs };
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

/**
 * The simulated MAAS must count no more commissions than in an undisturbed workflow, and no more deploys without a release or abort. Each of the
 * given releases by another user may add one deploy without a release or abort, because MAAS counts only the hub's releases.
 */
export async function expectConverged(
  craft: Stagecraft,
  scenario: Scenario,
  { subject, driver, end }: Told,
  releasedByOthers = 0,
): Promise<void> {
  const story = await driver.story(subject.id);
  expect(["completed", "reconciled"], `${end.failureMessage}\n${story}`).toContain(end.status);
  await scenario.expectEnd(craft.rig, subject);
  const { commission, deploy, release, abort } = countedOf(craft.rig, end);
  expect(commission, story).toBeLessThanOrEqual(scenario.outside.commission);
  const kept = deploy - release - abort;
  const wanted = scenario.outside.deploy - scenario.outside.release - scenario.outside.abort;
  expect(kept, `deploys that were not taken back\n${story}`).toBeGreaterThanOrEqual(wanted);
  expect(kept, story).toBeLessThanOrEqual(wanted + releasedByOthers);
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
