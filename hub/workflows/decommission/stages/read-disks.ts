import { failure } from "../../../../shared/failures.ts";
import type { DisksBefore } from "../../../../shared/tasks/sample-disks.ts";
import type { Task } from "../../../db/schema/index.ts";
import type { Observation } from "../../engine/stage.ts";
import {
  type AgentWork,
  cancelWork,
  isHistory,
  judgeTask,
  operationOf,
  settledTask,
  stageSeconds,
  startWork,
} from "../agent-work.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  type DecommissionState,
  stateConflict,
} from "../decommission-context.ts";
import { isCleanable } from "../keeps-status.ts";
import { baselineDisks } from "../known-disks.ts";
import { hasNoSystem } from "../no-system.ts";
import { newRandom, SAMPLE } from "../sample-work.ts";

const MOST_SERIALS = 512;

const READ: AgentWork<"node.sample_disks"> = {
  ...SAMPLE,
  input: () => ({ seed: newRandom(), key: newRandom(), data_only: false, again: [] }),
  isAskedFor: () => true,
  waitsFor: () => "The agent to read random blocks of the disks before their erase",
};

async function serialsOf({ services, node }: DecommissionContext): Promise<string[]> {
  // The hub cuts serial numbers to 64 characters, as the agent does in its sample of the disks.
  return [...(await baselineDisks(services.db, node))].slice(0, MOST_SERIALS).map((serial) => serial.slice(0, 64));
}

async function done(
  context: DecommissionContext,
  task_id: Task["id"] | null,
  message: string,
): Promise<Extract<Observation<DecommissionState>, { kind: "done" }>> {
  const disks_before: DisksBefore = { task_id, serials: await serialsOf(context) };
  return { kind: "done", message, patch: { disks_before } };
}

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const { node, decommission, session } = context;
  const { releasedGeneration } = decommission;
  if (node.status === "enrolling" || releasedGeneration !== null)
    return { kind: "skipped", message: "The system before the release is gone" };
  if (!isCleanable(node.status)) return { kind: "failed", failure: stateConflict(context, node.status, "read") };
  if (await hasNoSystem(context))
    return done(context, null, "A reinstall took the system away, so no block is compared after the deploy");
  const task = await settledTask(context, READ);
  if (task?.state === "succeeded" && !isHistory(context, task))
    return done(context, task.id, "The agent has read random blocks of the disks");
  if (decommission.forcedAt !== null && session === null)
    return {
      ...(await done(context, null, "The agent is gone, so no block is compared after the deploy")),
      commit: async (tx) => void (await cancelWork(tx, operationOf(context), READ)),
    };
  const verdict = judgeTask(context, READ, task);
  if (verdict?.kind !== "failed" || task === null || task.state === "queued") return verdict ?? { kind: "not_started" };
  // The erase by MAAS follows whether or not the agent has read the disks, so Muster releases even a host whose disks the agent cannot read. If the
  // agent cannot read the disks, the sanitization record says that the hub compared no block.
  return done(context, null, `No block is compared after the deploy. ${verdict.failure.message}`);
}

const seconds = (context: DecommissionContext): number => stageSeconds(context, READ);

/**
 * Before the release of a reimage, the agent reads random blocks of the disks, and the hub keeps digests of the blocks' content. After the deploy,
 * the stage `check_disks` compares the blocks that the agent read before the release with their new content. The stage `read_disks` changes nothing
 * on a disk.
 */
export const readDisks: DecommissionStageOf<"read_disks"> = {
  name: "read_disks",
  title: "Have the agent read random blocks of the disks before their erase",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds,
    failure: (context) =>
      failure(
        "upstream_transient",
        "cleaning_failed",
        `The agent of ${context.node.hostname} did not read the disks within ${seconds(context)} s. Resume.`,
        { node_id: context.node.id, agent_connected: context.session !== null },
      ),
  },
  retry: { maxAttempts: 2, baseSeconds: 5, maxSeconds: 60 },
  overrides: { post_deploy_connectivity_failure: { retry: "never" } },
  run: (context) => startWork(context, READ),
  compensate: async (context) => ({
    kind: "done",
    message: "A read of the disks changed nothing",
    commit: async (tx) => void (await cancelWork(tx, operationOf(context), READ)),
  }),
};
