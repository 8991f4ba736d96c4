import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import type { CompensationPlan } from "../../hub/db/queries/workflows.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import { auditLogs, workflows } from "../../hub/db/schema/index.ts";
import { ENDS_AS, effectOf, VERBS, type VerbTarget } from "../../hub/workflows/engine/recovery.ts";
import { FAILURES } from "../../shared/failures.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { STOP_VERBS, WORKFLOW_STATUSES } from "../../shared/workflow-status.ts";
import { useToyEngine } from "../support/toy-engine.ts";
import { insertToy, toyStage, toyWorkflow } from "../support/toy-workflow.ts";

/** Applies every verb in every workflow status, each twice at once as by two hubs (lifecycle 4.9, decision W1). */
const engine = useToyEngine();
const idle = toyStage("one", async () => ({ kind: "wait", reason: "for ever", seconds: 3600 }), {
  compensate: async () => ({ kind: "wait", reason: "being undone", seconds: 3600 }),
});
const workflow = toyWorkflow([idle]);

const plan = (cause: CompensationPlan["cause"]): CompensationPlan => ({
  cause,
  stages: ["one"],
  endsAs: cause === "failure" ? "failed_retryable" : "cancelled",
  attempt: 1,
  startedAt: null,
});
const targets: VerbTarget[] = WORKFLOW_STATUSES.flatMap((status): VerbTarget[] => {
  const none = { adopting: false, frozen: false, undoing: null, leased: false, requested: null };
  const target = { ...none, status, ran: true };
  if (status === "compensating") {
    const undoing = (["failure", "cancel", "restart"] as const).map((cause) => ({ ...target, undoing: cause }));
    return undoing.flatMap((one) => [one, { ...one, leased: true }]);
  }
  if (status === "running") {
    const requested = [null, ...STOP_VERBS].map((verb) => ({ ...target, requested: verb }));
    return requested.flatMap((one) => [one, { ...one, leased: true }]);
  }
  if (status === "failed_manual_intervention") return [true, false].map((frozen) => ({ ...target, frozen }));
  if (status === "pending") return [{ ...target, ran: false }, target, { ...target, adopting: true }];
  return [target];
});
const cases = VERBS.flatMap((verb) => targets.map((target) => ({ verb, ...target })));

async function rowIn({ status, ran, adopting, frozen, undoing, leased, requested }: VerbTarget): Promise<WorkflowId> {
  const id = await insertToy(engine.db(), "one");
  const failed = status.startsWith("failed_") || undoing === "failure";
  await engine
    .db()
    .update(workflows)
    .set({
      status,
      ...(leased ? { leaseOwner: randomUUID(), leaseUntil: sql`now() + interval '1 minute'` } : {}),
      stopRequest: requested === null ? null : { verb: requested, because: "asked for before" },
      startedAt: ran ? sql`now()` : null,
      state: frozen || adopting ? { $engine: { frozen, adopting } } : {},
      compensation: undoing === null ? null : plan(undoing),
      ...(failed
        ? { failureClass: "hardware_mismatch", failureCode: FAILURES.hardware_mismatch.codes[0], failureMessage: "m" }
        : {}),
    })
    .where(eq(workflows.id, id));
  return id;
}

describe.each(cases)(
  "$verb of a workflow that is $status (ran $ran, adopting $adopting, frozen $frozen, undoing $undoing, leased $leased, requested $requested)",
  ({ verb, ...target }) => {
    it("takes effect once under a double click or is refused twice, and the audit shows which", async () => {
      const id = await rowIn(target);
      const before = await readWorkflow(engine.db(), id);
      const clicks = await Promise.allSettled([engine.verb(workflow, id, verb), engine.verb(workflow, id, verb)]);
      const after = await readWorkflow(engine.db(), id);
      const audits = await engine
        .db()
        .select()
        .from(auditLogs)
        .where(eq(auditLogs.target, `workflows/${id}`))
        .orderBy(auditLogs.id);
      const effect = effectOf(verb, target);
      if (effect === "refused") {
        expect(clicks.map((click) => click.status)).toEqual(["rejected", "rejected"]);
        expect([after, audits]).toEqual([before, []]);
        return;
      }
      const answers = clicks.map((click) => (click.status === "fulfilled" ? click.value.status : click.reason));
      expect(answers).toEqual([after?.status, after?.status]);
      expect(audits.map((row) => (row.details as { effect: string }).effect)).toEqual([effect, "already"]);
      expect(audits).toMatchObject([
        { actor: "ann", role: "admin", reason: "because", details: { prior: { status: target.status, stage: "one" } } },
        { details: { now: { status: after?.status }, expected: { status: ENDS_AS[verb] } } },
      ]);
      const moved = effect !== "already" && effect !== "at_commit";
      expect((after?.fence ?? 0) - (before?.fence ?? 0)).toBe(moved ? 1 : 0);
      if (effect === "at_commit") expect(after).toMatchObject({ status: target.status, stopRequest: { verb } });
      if (moved) expect(after?.stopRequest).toBeNull();
    });
  },
);
