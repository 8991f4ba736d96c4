import { eq, sql } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import type { CompensationPlan } from "../../hub/db/queries/workflows.ts";
import { readWorkflow } from "../../hub/db/queries/workflows.ts";
import { auditLogs, workflows } from "../../hub/db/schema/index.ts";
import { effectOf, VERBS, type VerbTarget } from "../../hub/workflows/engine/recovery.ts";
import { FAILURES } from "../../shared/failures.ts";
import type { WorkflowId } from "../../shared/ids.ts";
import { WORKFLOW_STATUSES } from "../../shared/workflow-status.ts";
import { useToyEngine } from "../support/toy-engine.ts";
import { insertToy, toyStage, toyWorkflow } from "../support/toy-workflow.ts";

/** Every verb in every status, clicked twice at once as two hubs would hear it, on real rows (lifecycle 4.9, decision W1). */
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
  const target = { status, ran: true, adopting: false, frozen: false, undoing: null };
  if (status === "compensating")
    return (["failure", "cancel", "restart"] as const).map((undoing) => ({ ...target, undoing }));
  if (status === "failed_manual_intervention") return [true, false].map((frozen) => ({ ...target, frozen }));
  if (status === "pending") return [{ ...target, ran: false }, target, { ...target, adopting: true }];
  return [target];
});
const cases = VERBS.flatMap((verb) => targets.map((target) => ({ verb, ...target })));

async function rowIn({ status, ran, adopting, frozen, undoing }: VerbTarget): Promise<WorkflowId> {
  const id = await insertToy(engine.db(), "one");
  const failed = status.startsWith("failed_") || undoing === "failure";
  await engine
    .db()
    .update(workflows)
    .set({
      status,
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
  "$verb of a workflow that is $status (ran $ran, adopting $adopting, frozen $frozen, undoing $undoing)",
  ({ verb, ...target }) => {
    it("takes effect once under a double click, or is refused twice, and says in the audit which", async () => {
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
      const second = effect === "request_cancel" ? "request_cancel" : "already";
      expect(audits.map((row) => (row.details as { effect: string }).effect)).toEqual([effect, second]);
      expect(audits).toMatchObject([
        { actor: "ann", role: "admin", reason: "because", details: { prior: { status: target.status, stage: "one" } } },
        { details: { expected: { status: after?.status } } },
      ]);
      const moved = effect !== "already" && effect !== "request_cancel";
      expect((after?.fence ?? 0) - (before?.fence ?? 0)).toBe(moved ? 1 : 0);
    });
  },
);
