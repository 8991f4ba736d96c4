import { randomBytes, randomInt } from "node:crypto";
import { type Failure, failure } from "../../../../shared/failures.ts";
import type { TaskInput } from "../../../../shared/tasks/index.ts";
import { readGpuSizes } from "../../../db/queries/node-inventories.ts";
import { newestTaskOf } from "../../../db/queries/task-reads.ts";
import type { Task } from "../../../db/schema/index.ts";
import type { CheckedAnswers } from "../../../gpu-memory/expected-answers.ts";
import {
  answersToCheck,
  type Challenged,
  challengeOf,
  type Filled,
  gpusOfScrub,
} from "../../../gpu-memory/gpu-evidence.ts";
import { whyClaimImpossible } from "../../../node/gpu-claim.ts";
import type { Failed, Observation, Outcome } from "../../engine/stage.ts";
import {
  cancelWork,
  isHistory,
  judgeTask,
  operationOf,
  settledTask,
  stageSeconds,
  startWork,
  type WatchedWork,
} from "../agent-work.ts";
import { notCleaned } from "../cleaning-steps.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  type DecommissionState,
  stateConflict,
} from "../decommission-context.ts";
import { challengedOf, filledOf, hostMemoryOf, needsOverwrite, requiredOf, scrubbedOf } from "../gpu-memory.ts";
import { isCleanable } from "../keeps-status.ts";

/** A worker is the agent's process that overwrites the memory of one GPU, and has `WORKER_SECONDS` for the overwrite. */
const WORKER_SECONDS = 600;
/** After the overwrite, a worker holds the GPU memory for `HOLD_SECONDS`, until the hub asks about random blocks of the memory. */
const HOLD_SECONDS = 900;
/** A worker has `ANSWER_SECONDS` to answer the hub's questions, and to zero and free the GPU's memory. */
const ANSWER_SECONDS = 300;
/** The agent has `FILL_SECONDS` for the task that overwrites GPU memory, besides the time that the task waits for an absent agent. */
const FILL_SECONDS = 1_800;
const CHALLENGE_SECONDS = 900;
const CHECK_AGAIN_SECONDS = 15;

const failedTask =
  (what: string) =>
  (context: DecommissionContext, task: Task, evidence: Parameters<typeof failure>[3]): Failure =>
    failure(
      "upstream_transient",
      "cleaning_failed",
      `The GPU memory of ${context.node.hostname} was not ${what}: ${task.errorMessage ?? `the task is ${task.state}`}`,
      evidence,
    );

const FILL: WatchedWork<"node.gpu_fill"> = {
  type: "node.gpu_fill",
  undoneBy: null,
  workSeconds: () => FILL_SECONDS,
  isAskedFor: () => true,
  failed: failedTask("overwritten"),
  waitsFor: () => "The agent to overwrite the memory of the GPUs",
};
const CHALLENGE: WatchedWork<"node.gpu_challenge"> = {
  type: "node.gpu_challenge",
  undoneBy: null,
  workSeconds: () => CHALLENGE_SECONDS,
  isAskedFor: () => true,
  failed: failedTask("shown to be overwritten"),
  waitsFor: () => "The agent to answer questions about the memory of the GPUs",
};

type Order = TaskInput<"node.gpu_fill">["gpus"];
interface Known {
  readonly scrub: Task;
  readonly order: Order;
}

/** Returns the GPUs that the newest reset named, or the failure if the agent cannot overwrite the GPUs' memory. */
async function orderOf(context: DecommissionContext): Promise<Known | Failed<DecommissionState>> {
  const { node, gpuVendor, services } = context;
  const { level } = requiredOf(context);
  const evidence = { node_id: node.id, sku_id: node.sku, gpu_claim_level: level };
  const scrub = await newestTaskOf(services.db, operationOf(context), ["node.gpu_scrub"]);
  const scrubbed = scrubbedOf(scrub);
  const { order, expected, unnamed } = scrubbed === null ? NO_GPUS : gpusOfScrub(scrubbed);
  const gpus = Math.max(node.gpusTotal, order.length);
  const impossible = whyClaimImpossible({ level, vendor: gpuVendor, gpus });
  if (impossible !== null) {
    const told = `The profile of ${node.hostname} asks for the level ${level} of GPU memory, and ${impossible}.`;
    return { kind: "failed", failure: failure("input_config_error", "gpu_claim_impossible", told, evidence) };
  }
  const named = new Set(expected.map(({ uuid }) => uuid)).size;
  // If two GPUs of a host have one UUID, the host has named one GPU twice.
  if (scrub !== null && unnamed.length === 0 && named === order.length && named >= node.gpusTotal)
    return { scrub, order };
  const message = `The reset named ${named} of ${node.gpusTotal} GPUs of ${node.hostname} by their UUIDs, so not all can be overwritten. Rerun, so that the GPUs are reset again.`;
  return {
    kind: "failed",
    failure: failure("upstream_transient", "cleaning_failed", message, { ...evidence, unnamed: unnamed.slice(0, 16) }),
  };
}
const NO_GPUS: ReturnType<typeof gpusOfScrub> = { order: [], expected: [], unnamed: [] };

/**
 * A challenge asks about the GPU memory that one fill has overwritten, and the agent's process for a GPU (a worker) answers only one challenge. If
 * the fill (the overwrite of GPU memory) or the challenge (the questions about random blocks of it) fails, the hub repeats both.
 */
interface Attempt {
  readonly fill: Task | null;
  readonly challenge: Task | null;
}

async function attemptOf(context: DecommissionContext): Promise<Attempt> {
  const fill = await settledTask(context, FILL);
  if (fill === null || isHistory(context, fill)) return { fill: null, challenge: null };
  const challenge = await settledTask(context, CHALLENGE);
  const asked = (challenge?.input as { fill_task_id?: unknown } | undefined)?.fill_task_id;
  if (challenge === null || asked !== fill.id) return { fill, challenge: null };
  return isHistory(context, challenge) ? { fill: null, challenge: null } : { fill, challenge };
}

const nothingToDo = (context: DecommissionContext): string | null =>
  needsOverwrite(context)
    ? null
    : context.node.gpusTotal === 0
      ? "The node's SKU has no GPUs"
      : "The node's profile asks for no overwritten GPU memory";

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const { node } = context;
  if (!isCleanable(node.status)) return { kind: "failed", failure: stateConflict(context, node.status, "cleaned") };
  const nothing = nothingToDo(context);
  if (nothing !== null) return { kind: "skipped", message: nothing };
  const known = await orderOf(context);
  if ("kind" in known) return known;
  const { fill, challenge } = await attemptOf(context);
  if (fill === null) return { kind: "not_started" };
  if (fill.state !== "succeeded") return judgeTask(context, FILL, fill) ?? { kind: "not_started" };
  const filled = filledOf(fill);
  if (filled === null) return unread(context, fill);
  if (challenge === null)
    return isAnyToAsk(filled)
      ? { kind: "not_started" }
      : verdict(context, known, { filled, fill, challenge: null, challenged: null });
  if (challenge.state !== "succeeded") return judgeTask(context, CHALLENGE, challenge) ?? { kind: "not_started" };
  const challenged = challengedOf(challenge);
  return challenged === null
    ? unread(context, challenge)
    : verdict(context, known, { filled, fill, challenge, challenged });
}

const isAnyToAsk = (filled: Filled): boolean => challengeOf(filled, "", () => 0, ANSWER_SECONDS) !== null;

const unread = (context: DecommissionContext, task: Task): Failed<DecommissionState> => ({
  kind: "failed",
  failure: notCleaned(context, ["the result of the task cannot be read"], task),
  patch: { failed_task_id: task.id },
});

interface Answered {
  readonly filled: Filled;
  readonly fill: Task;
  readonly challenge: Task | null;
  readonly challenged: Challenged | null;
}

/**
 * The stage `overwrite_gpu_memory` fails if a step did not end well, or if the GPU memory does not meet the profile's requirement. If the hub asks no
 * questions about random blocks of GPU memory, only GPUs whose memory the kernel's driver cleared can meet the requirement.
 */
async function verdict(
  context: DecommissionContext,
  { scrub }: Known,
  { filled, fill, challenge, challenged }: Answered,
): Promise<Observation<DecommissionState>> {
  const { services, session } = context;
  let checked: CheckedAnswers[] = [];
  if (challenged !== null) {
    try {
      checked = await services.checkAnswers(answersToCheck(filled, challenged));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return {
        kind: "wait",
        reason: `This hub to check the answers: ${why}`.slice(0, 300),
        seconds: CHECK_AGAIN_SECONDS,
      };
    }
  }
  const last = challenge ?? fill;
  const check = {
    fill_task_id: fill.id,
    challenge_task_id: last.id,
    checked,
    agent_version: session?.agentVersion ?? "of an unknown version",
    boot_id: session?.bootId ?? "unknown",
  };
  const memory = hostMemoryOf(
    context,
    { scrub, fill, challenge },
    check,
    null,
    await readGpuSizes(services.db, context.node.id),
  );
  const steps = [...filled.result.steps, ...(challenged?.result.steps ?? [])];
  const reasons = [
    ...steps.filter(({ outcome }) => outcome !== "ok").map(({ target, message }) => `${target}: ${message}`),
    ...(memory === null ? ["the result of the reset cannot be read"] : memory.unmet),
  ];
  if (reasons.length > 0 || memory === null)
    return {
      kind: "failed",
      failure: notCleaned(context, reasons, last, { gpu_claim_level: requiredOf(context).level }),
      patch: { failed_task_id: last.id, gpu_memory: null },
    };
  const levels = memory.gpus.map(({ level }) => level);
  const done = `The memory of ${levels.length} GPUs is overwritten: ${[...new Set(levels)].join(" and ")}`;
  return { kind: "done", message: done, details: { task_id: last.id }, patch: { gpu_memory: check } };
}

/** Queues the fill, which overwrites GPU memory, or after a fill the challenge, which asks about random blocks of the memory. */
async function run(context: DecommissionContext): Promise<Outcome<DecommissionState>> {
  const known = await orderOf(context);
  if ("kind" in known) return known;
  const filled = filledOf((await attemptOf(context)).fill);
  const nonce = randomBytes(16).toString("hex");
  const questions = filled === null ? null : challengeOf(filled, nonce, (below) => randomInt(below), ANSWER_SECONDS);
  if (questions !== null)
    return startWork(context, {
      ...CHALLENGE,
      input: () => questions,
      isAskedFor: (_context, task) =>
        (task.input as { fill_task_id?: unknown }).fill_task_id === questions.fill_task_id,
    });
  return startWork(context, {
    ...FILL,
    // Each overwrite of GPU memory gets a new random seed, because with an old seed the bytes of an earlier overwrite would look like those of a new
    // one.
    input: () => ({
      plan: false,
      seed: randomBytes(32).toString("hex"),
      marker: null,
      gpus: known.order,
      deadline_seconds: WORKER_SECONDS,
      hold_seconds: HOLD_SECONDS,
    }),
  });
}

const seconds = (context: DecommissionContext): number => stageSeconds(context, FILL, CHALLENGE);

/**
 * Has the agent overwrite GPU memory and answer questions about random blocks of the memory (architecture 14.7, decision C2). If the profile requires
 * an overwrite and the agent did not prove the overwrite, the stage `overwrite_gpu_memory` fails.
 */
export const overwriteGpuMemory: DecommissionStageOf<"overwrite_gpu_memory"> = {
  name: "overwrite_gpu_memory",
  title: "Have the agent overwrite GPU memory, and check its answers about random blocks",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds,
    failure: (context) =>
      failure(
        "upstream_transient",
        "cleaning_failed",
        `The memory of the GPUs of ${context.node.hostname} was not overwritten within ${seconds(context)} s.`,
        { node_id: context.node.id, agent_connected: context.session !== null },
      ),
  },
  retry: { maxAttempts: 2, baseSeconds: 5, maxSeconds: 60 },
  overrides: { post_deploy_connectivity_failure: { retry: "never" } },
  run,
  compensate: async (context) => ({
    kind: "done",
    message: "The tasks that overwrite GPU memory are cancelled if the agent had not ended them",
    commit: async (tx) => {
      await cancelWork(tx, operationOf(context), FILL);
      await cancelWork(tx, operationOf(context), CHALLENGE);
    },
  }),
};
