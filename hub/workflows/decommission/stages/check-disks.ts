import { failure } from "../../../../shared/failures.ts";
import { TASKS } from "../../../../shared/tasks/index.ts";
import { MOST_SAMPLED_DISKS } from "../../../../shared/tasks/sample-disks.ts";
import { readTask } from "../../../db/queries/task-reads.ts";
import { barUnerased } from "../../../node/health-override.ts";
import type { AgentWork } from "../agent-work.ts";
import { cleaningStage } from "../cleaning-stage.ts";
import { notCleaned } from "../cleaning-steps.ts";
import type { DecommissionStageOf } from "../decommission-context.ts";
import { type DiskCheck, findingsOf, readDiskCheck, sampledDisks } from "../disk-check.ts";
import { newRandom, SAMPLE } from "../sample-work.ts";
import { lackOf } from "../unerased.ts";

const NAMED = 5;

const CHECK: AgentWork<"node.sample_disks"> = {
  ...SAMPLE,
  input: async ({ state }, tx) => {
    const earlier = state.disks_before?.task_id == null ? null : await readTask(tx, state.disks_before.task_id);
    const order = TASKS["node.sample_disks"].input.safeParse(earlier?.input).data;
    const again = (sampledDisks(earlier) ?? []).flatMap(({ serial, sample }) =>
      serial === null || sample === null ? [] : [{ serial, blocks: sample.prints.map(({ block }) => block) }],
    );
    return {
      seed: newRandom(),
      key: order?.key ?? newRandom(),
      free_only: true,
      again: again.slice(0, MOST_SAMPLED_DISKS),
    };
  },
  // The task that read the disks before the release is of the same operation and type, and ran on the system before.
  isAskedFor: ({ state }, task) => task.id !== state.disks_before?.task_id,
  waitsFor: () => "The agent to read random blocks of the disks after their erase",
};

function messageOf({ read, unread, compared, missing, added }: DiskCheck): string {
  const differ = [
    ...missing.slice(0, NAMED).map((serial) => `${serial} is missing`),
    ...added.slice(0, NAMED).map((serial) => `${serial} is new`),
  ];
  const also = differ.length === 0 ? "" : `. The disks differ from those before the release: ${differ.join(", ")}`;
  return `The agent read ${read} disks and left ${unread} out; ${compared} blocks were compared with their content before the release${also}`;
}

/**
 * Compares the disks of the new system with those before the release. A block that an erase must have changed and that has its earlier content shows
 * that the erase did not reach the disk. The node is then barred from new work, as after every erase without evidence (decision M9).
 */
export const checkDisks: DecommissionStageOf<"check_disks"> = cleaningStage({
  name: "check_disks",
  title: "Have the agent read the disks after their erase, and compare them with those before",
  work: CHECK,
  nothingToDo: () => null,
  decide: async (context, _result, task) => {
    const { node, input, state, services, decommission, workflowId } = context;
    const { erase } = input;
    const check = await readDiskCheck(services.db, erase, state.disks_before, task);
    if (check === null)
      return { kind: "failed", failure: notCleaned(context, ["the result of the task cannot be read"], task) };
    const findings = findingsOf(erase, check);
    const details = { task_id: task.id };
    if (erase === "none" || findings.length === 0) return { kind: "done", message: messageOf(check), details };
    if (state.disks_waived === node.generation)
      return {
        kind: "done",
        message: `Continued by a decision of ${state.disks_waived_by}. ${messageOf(check)}`,
        details,
      };
    const code = check.kept.length > 0 ? "erase_disproved" : "disks_changed";
    const more = findings.length > NAMED ? `; and ${findings.length - NAMED} more` : "";
    const message = `The erase (${erase}) of ${node.hostname} did not reach all its disks, or a disk is gone: ${findings.slice(0, NAMED).join("; ")}${more}.`;
    const evidence = { node_id: node.id, task_id: task.id, erase, findings: findings.map((one) => one.slice(0, 256)) };
    return {
      kind: "failed",
      failure: failure("state_ambiguity", code, message.slice(0, 1_000), evidence),
      commit: (tx) =>
        barUnerased(tx, {
          nodeId: node.id,
          target: decommission.maasSystemId,
          reason: `${lackOf(code)} (${erase}) in ${decommission.mode} ${workflowId}`,
          setBy: `operation:${workflowId}`,
          neededErase: erase,
        }),
    };
  },
});
