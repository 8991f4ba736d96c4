import { failure } from "../../../../shared/failures.ts";
import { MOST_SAMPLED_DISKS } from "../../../../shared/tasks/sample-disks.ts";
import { readTask } from "../../../db/queries/task-reads.ts";
import { barUnerased } from "../../../node/health-override.ts";
import type { AgentWork } from "../agent-work.ts";
import { cleaningStage } from "../cleaning-stage.ts";
import { notCleaned } from "../cleaning-steps.ts";
import type { DecommissionStageOf } from "../decommission-context.ts";
import { type DiskCheck, type DiskFinding, findingsOf, readDiskCheck, sampledDisks, serialsOf } from "../disk-check.ts";
import { newRandom, SAMPLE } from "../sample-work.ts";
import { lackOf } from "../unerased.ts";

const NAMED = 5;
/**
 * The name under which a person waives a finding about a disk. A waiver's name leaves out the finding's text, because the counts of blocks in the
 * text may differ in the next sample.
 */
const foundName = ({ about, serial }: DiskFinding): string => `${about} ${serial}`;

const CHECK: AgentWork<"node.sample_disks"> = {
  ...SAMPLE,
  input: async ({ state }, tx) => {
    const earlier = state.disks_before?.task_id == null ? null : await readTask(tx, state.disks_before.task_id);
    const before = sampledDisks(earlier);
    const again = (before?.disks ?? []).flatMap(({ serial, sample }) =>
      serial === null || sample === null ? [] : [{ serial, blocks: sample.prints.map(({ block }) => block) }],
    );
    return {
      seed: newRandom(),
      key: before?.key ?? newRandom(),
      data_only: true,
      again: again.slice(0, MOST_SAMPLED_DISKS),
    };
  },
  // The task that read the disks before the release is of the same operation and type as the task after the deploy, but ran on the earlier system.
  isAskedFor: ({ state }, task) => task.id !== state.disks_before?.task_id,
  waitsFor: () => "The agent to read random blocks of the disks after their erase",
};

function messageOf(check: DiskCheck): string {
  const { read, unread, compared, added } = check;
  const missing = serialsOf(check, "missing");
  const differ = [
    ...missing.slice(0, NAMED).map((serial) => `${serial} is missing`),
    ...added.slice(0, NAMED).map((serial) => `${serial} is new`),
  ];
  const also = differ.length === 0 ? "" : `. The disks differ from those before the release: ${differ.join(", ")}`;
  return `The agent read ${read} disks and left ${unread} out; ${compared} blocks were compared with their content before the release${also}`;
}

/**
 * Compares the disks of the new system with the disks before the release. If a block that the erase must have changed has its earlier content, the
 * erase did not reach the disk. If the erase did not reach a disk, the hub keeps new work off the node, as after every erase without evidence
 * (decision M9).
 */
export const checkDisks: DecommissionStageOf<"check_disks"> = cleaningStage({
  name: "check_disks",
  title: "Have the agent read the disks after their erase, and compare them with those before",
  work: CHECK,
  nothingToDo: ({ state, node }) =>
    state.disks_unread === node.generation
      ? `The agent cannot read the disks, and ${state.disks_unread_by} decided to continue without a comparison`
      : null,
  decide: async (context, _result, task) => {
    const { node, input, state, services, decommission, workflowId } = context;
    const { erase } = input;
    const check = await readDiskCheck(services.db, erase, state.disks_before, task);
    if (check === null)
      return { kind: "failed", failure: notCleaned(context, ["the result of the task cannot be read"], task) };
    const findings = findingsOf(erase, check);
    const details = { task_id: task.id };
    if (erase === "none" || findings.length === 0) return { kind: "done", message: messageOf(check), details };
    const waived = new Set(state.disks_waived === node.generation ? (state.disks_found ?? []) : []);
    if (findings.every((one) => waived.has(foundName(one))))
      return {
        kind: "done",
        message: `Continued by a decision of ${state.disks_waived_by}. ${messageOf(check)}`,
        details,
      };
    const code = serialsOf(check, "kept").length > 0 ? "erase_disproved" : "disks_changed";
    const texts = findings.map(({ text }) => text);
    const more = texts.length > NAMED ? `; and ${texts.length - NAMED} more` : "";
    const message = `The erase (${erase}) of ${node.hostname} did not reach all its disks, or a disk is gone: ${texts.slice(0, NAMED).join("; ")}${more}.`;
    const evidence = { node_id: node.id, task_id: task.id, erase, findings: texts.map((one) => one.slice(0, 256)) };
    return {
      kind: "failed",
      failure: failure("state_ambiguity", code, message.slice(0, 1_000), evidence),
      // A person's decision to continue covers only the findings that the person has seen, so other findings wait for another decision.
      patch: { disks_found: findings.map(foundName), disks_waived: null },
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
