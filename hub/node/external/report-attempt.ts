import { ApiError } from "../../../shared/api/errors.ts";
import type { ExternalFacts } from "../../../shared/api/external-attempts.ts";
import type { ExternalState } from "../../../shared/external-attempt.ts";
import type { ExternalAttemptId } from "../../../shared/ids.ts";
import { withoutCredentials } from "../../../shared/without-credentials.ts";
import { keepLateReport, readAttempt } from "../../db/queries/external-attempts.ts";
import { lockNode, setNodeHost } from "../../db/queries/nodes.ts";
import type { ExternalAttemptRow, Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { moveNode } from "../move-node.ts";
import { completeIfReady } from "./admit-node.ts";
import { effectOfReport, WHY_REFUSED } from "./attempt-table.ts";
import { moveAndTell } from "./move-attempt.ts";

/** A report about an attempt. The texts of a report come from outside of Muster, and the hub stores them without credentials. */
export type Report =
  | { readonly kind: "progress"; readonly step: string; readonly percent: number | undefined }
  | { readonly kind: "complete"; readonly facts: ExternalFacts }
  | { readonly kind: "fail"; readonly code: string; readonly message: string }
  | { readonly kind: "abandon"; readonly reason: string };

export interface Reported {
  readonly outcome: "applied" | "repeated" | "kept";
  readonly detail: string;
}

/** Takes a report about an attempt. Throws ApiError and writes nothing if the hub refuses the report about a provisioning attempt. */
export async function reportAttempt(
  tx: Tx,
  id: ExternalAttemptId,
  report: Report,
  reporter: string,
): Promise<Reported> {
  const first = await readAttempt(tx, id);
  const node = first === null ? null : await lockNode(tx, first.attempt.nodeId);
  const view = node === null ? null : await readAttempt(tx, id);
  if (view === null || node === null) throw new ApiError("not_found", `There is no external attempt ${id}.`);
  const { attempt, isSuperseded } = view;
  const by = { isHolder: attempt.holder === reporter, isSuperseded };
  const effect = effectOfReport(attempt.state, report.kind, by);
  const context = { node_id: node.id, attempt_id: id };
  switch (effect.kind) {
    case "foreign":
      throw new ApiError(
        "forbidden",
        `Attempt ${id} belongs to ${attempt.holder}, who alone reports about it. Abandon it, or begin an attempt when it is over.`,
        { context },
      );
    case "refused":
      throw new ApiError(
        "conflict",
        `Attempt ${attempt.number} of host ${node.hostname} takes no ${report.kind}: ${WHY_REFUSED[effect.why]}.`,
        { context },
      );
    case "kept":
      await keepLateReport(tx, id, `${report.kind} by ${reporter}: ${told(report)}`.slice(0, 1_024));
      return { outcome: "kept", detail: "A newer attempt of the node has begun, so this report changes nothing." };
    case "ignored":
    case "repeated":
      return { outcome: "repeated", detail: `The attempt took this ${report.kind} before.` };
    case "moved":
      await apply(tx, { attempt, node, to: effect.to }, report, reporter);
      return { outcome: "applied", detail: `The attempt took this ${report.kind}.` };
  }
}

const told = (report: Report): string => {
  switch (report.kind) {
    case "progress":
      return withoutCredentials(report.step);
    case "complete":
      return "the host is provisioned";
    case "fail":
      return `${report.code}: ${withoutCredentials(report.message)}`;
    case "abandon":
      return withoutCredentials(report.reason);
  }
};

async function apply(
  tx: Tx,
  { attempt, node, to }: { readonly attempt: ExternalAttemptRow; readonly node: Node; readonly to: ExternalState },
  report: Report,
  reporter: string,
): Promise<void> {
  const isReport = report.kind !== "abandon";
  const move = { to, reason: told(report), isReport };
  switch (report.kind) {
    case "progress":
      await moveAndTell(tx, attempt, node, { ...move, step: told(report), percent: report.percent }, reporter);
      return;
    case "fail":
      await moveAndTell(tx, attempt, node, { ...move, failureCode: report.code }, reporter);
      return;
    case "abandon":
      await moveAndTell(tx, attempt, node, move, reporter);
      return;
    case "complete":
      await complete(tx, attempt, node, { ...move, facts: report.facts }, reporter);
  }
}

/**
 * If an external system has completed the provisioning of a host, the host need not enroll: its node becomes ready when its conditions are reported,
 * by whatever sender.
 */
async function complete(
  tx: Tx,
  attempt: ExternalAttemptRow,
  node: Node,
  move: Parameters<typeof moveAndTell>[3] & { readonly facts: ExternalFacts },
  reporter: string,
): Promise<void> {
  const verifying = await moveAndTell(tx, attempt, node, move, reporter);
  if (move.facts.host !== undefined) await setNodeHost(tx, node.id, move.facts.host);
  if (node.status === "bootstrap_issued" && !node.runsAgent) {
    const why = `${attempt.provisioner} has provisioned the host, which runs no agent`;
    await moveNode(tx, node.id, { from: "bootstrap_issued", to: "enrolling", owner: "onboarding" }, why);
  }
  const now = await lockNode(tx, node.id);
  if (now !== null) await completeIfReady(tx, now, verifying);
}
