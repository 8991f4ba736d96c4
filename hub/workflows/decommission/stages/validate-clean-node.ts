import { type Failure, failure } from "../../../../shared/failures.ts";
import { compareResidue, type ResidueJudgement } from "../../../../shared/residue/compare.ts";
import { ResidueSnapshot } from "../../../../shared/residue/snapshot.ts";
import { readBaseline } from "../../../db/queries/node-baselines.ts";
import { quarantineUnclean } from "../../../node/lifecycle.ts";
import type { AgentWork } from "../agent-work.ts";
import { cleaningStage } from "../cleaning-stage.ts";
import type { DecommissionContext, DecommissionStageOf } from "../decommission-context.ts";
import { tenantOf } from "../tenant.ts";

/** The agent's walk over a large root file system takes minutes, so the agent's snapshot of the host may take up to `VALIDATE_SECONDS`. */
const VALIDATE_SECONDS = 3_600;
/**
 * If a host is not clean, the failure names at most `NAMED` findings in its message, and at most `MOST_TOLD` in its evidence. The result of the task
 * `node.validate_clean` names everything in which the host differs from the clean host.
 */
const NAMED = 5;
const MOST_TOLD = 40;

const VALIDATE: AgentWork<"node.validate_clean"> = {
  type: "node.validate_clean",
  undoneBy: null,
  input: (context) => ({ allocation: tenantOf(context), plan: false }),
  workSeconds: () => VALIDATE_SECONDS,
  isAskedFor: () => true,
  failed: (context, task, evidence) =>
    failure(
      "upstream_transient",
      "cleaning_failed",
      `The state of ${context.node.hostname} could not be read: ${task.errorMessage ?? `the task is ${task.state}`}`,
      evidence,
    ),
  waitsFor: () => "The agent to look for what a tenant left",
};

/** Returns each difference from the clean host, and each unreadable part of the host, as a text such as `setuid_files: added /usr/local/bin/x`. */
function findingsOf(judgement: ResidueJudgement): string[] {
  return Object.entries(judgement.items).flatMap(([item, judged]) => {
    if (judged.state === "clean") return [];
    if (judged.state === "unreadable") return [`${item}: unreadable, ${judged.reason}`];
    const more = judged.more > 0 ? [`${item}: and ${judged.more} more`] : [];
    return [...judged.found.map(({ name, kind }) => `${item}: ${kind} ${name}`), ...more];
  });
}

function residueFound({ node }: DecommissionContext, taskId: string, findings: readonly string[]): Failure {
  const more = findings.length > NAMED ? `; and ${findings.length - NAMED} more` : "";
  const message = `Host ${node.hostname} is not clean: ${findings.slice(0, NAMED).join("; ")}${more}.`;
  return failure("state_ambiguity", "residue_found", message.slice(0, 1_000), {
    node_id: node.id,
    task_id: taskId,
    findings: findings.slice(0, MOST_TOLD).map((one) => one.slice(0, 256)),
  });
}

/**
 * Compares the host's state with the baseline, a snapshot of the host from before its first tenant (architecture 14.4). If the host differs from the
 * snapshot from before its first tenant, or the agent cannot read a part of the host's state, the hub quarantines the node.
 */
export const validateCleanNode: DecommissionStageOf<"validate_clean_node"> = cleaningStage({
  name: "validate_clean_node",
  title: "Have the agent read the host's state, and compare it with the baseline",
  work: VALIDATE,
  nothingToDo: () => null,
  decide: async (context, { snapshot }, task) => {
    const { node, services } = context;
    const known = await readBaseline(services.db, node.id, node.generation);
    const baseline = ResidueSnapshot.safeParse(known?.baseline.snapshot);
    const judgement = compareResidue(baseline.success ? baseline.data : null, snapshot, tenantOf(context));
    if (judgement.verdict === "clean")
      return { kind: "done", message: "The host is as it was before its first tenant", details: { task_id: task.id } };
    const found = residueFound(context, task.id, findingsOf(judgement));
    return { kind: "failed", failure: found, commit: (tx) => quarantineUnclean(tx, node.id, found.message) };
  },
});
