import { setTimeout as sleep } from "node:timers/promises";
import { GPU_FAULTS, type GpuFault } from "../../shared/gpu-faults.ts";
import { GpuCommitment, GpuRelease } from "../../shared/gpu-memory.ts";
import { canonicalJson } from "../../shared/json.ts";
import type { TaskHandlers, TaskInput, TaskResult, TaskRun } from "../../shared/tasks/index.ts";
import { ANSWER_FILE, CHALLENGE_FILE, COMMITMENT_FILE, GpuAnswers, RELEASE_FILE } from "../gpu-memory/exchange.ts";
import { aliveWorker, exchangeFolder, readExchange, writeExchange } from "../gpu-memory/exchange-reader.ts";
import type { System } from "../system/system.ts";

type Type = "node.gpu_challenge";
type Input = TaskInput<Type>;
type Gpu = Input["gpus"][number];
type Step = TaskResult<Type>["steps"][number];
interface Outcome {
  readonly uuid: string;
  readonly answers: string[];
  readonly release: GpuRelease | null;
  readonly fault: GpuFault | null;
  readonly message: string;
}

const LOOK_EVERY_MS = 100;

/**
 * Passes the hub's challenge, which asks for the content of random GPU memory blocks, to the worker processes that hold GPU memory, and returns their
 * answers.
 */
export const gpuChallenge =
  (system: System, lookEveryMs: number = LOOK_EVERY_MS): TaskHandlers[Type] =>
  async (input, run) => {
    if (input.plan) return { ok: true, result: { steps: input.gpus.map(planned), gpus: [] } };
    const done = { answered: 0, released: 0 };
    const tell = (what: keyof typeof done) => {
      done[what] += 1;
      run.progress({ ...done });
    };
    const outcomes = await Promise.all(input.gpus.map((gpu) => ask(system, input, gpu, { run, tell, lookEveryMs })));
    return {
      ok: true,
      result: { steps: outcomes.map(stepOf), gpus: outcomes.map(({ message: _told, ...outcome }) => outcome) },
    };
  };

interface Asking {
  readonly run: TaskRun<Type>;
  readonly tell: (what: "answered" | "released") => void;
  readonly lookEveryMs: number;
}

async function ask(system: System, input: Input, { uuid, blocks }: Gpu, asking: Asking): Promise<Outcome> {
  const folder = exchangeFolder(input.fill_task_id, uuid);
  const challenge = { nonce: input.nonce, blocks };
  if ((await readExchange(system, folder, COMMITMENT_FILE, GpuCommitment)) === null)
    return failed(uuid, "not_committed", `No worker committed to the memory of GPU ${uuid} for this task.`);
  // The agent keeps the hub's first challenge for a GPU even if a second one comes, because a dishonest host could otherwise choose between two
  // answers.
  if ((await system.read(`${folder}/${CHALLENGE_FILE}`)) === null)
    await writeExchange(system, folder, CHALLENGE_FILE, challenge);
  const until = performance.now() + input.deadline_seconds * 1000;
  for (let hasAnswered = false; ; ) {
    // The worker answers, then releases, then ends. The agent reads whether the worker process lives, then its release of the GPU, then its answer,
    // so that a later event never hides an earlier one.
    const alive = await aliveWorker(system, folder);
    const release = await readExchange(system, folder, RELEASE_FILE, GpuRelease);
    const answer = await readExchange(system, folder, ANSWER_FILE, GpuAnswers);
    if (answer !== null && !hasAnswered) asking.tell("answered");
    hasAnswered = answer !== null;
    if (answer !== null && canonicalJson(answer.challenge) !== canonicalJson(challenge))
      return failed(uuid, "not_answered", `The worker of GPU ${uuid} has answered another challenge.`, release);
    if (release !== null) {
      asking.tell("released");
      if (answer === null)
        return failed(
          uuid,
          "not_answered",
          `The worker of GPU ${uuid} released the memory without an answer.`,
          release,
        );
      return { uuid, answers: answer.answers, release, fault: null, message: "" };
    }
    const answers = answer?.answers ?? [];
    if (alive === null)
      return failed(
        uuid,
        "worker_lost",
        `The worker of GPU ${uuid} ended before it had zeroed the memory.`,
        null,
        answers,
      );
    if (performance.now() > until) {
      const what = `The worker of GPU ${uuid}, process ${alive.pid}, did not zero the memory within ${input.deadline_seconds} s.`;
      return failed(uuid, "deadline_passed", what, null, answers);
    }
    asking.run.signal.throwIfAborted();
    await sleep(asking.lookEveryMs);
  }
}

const failed = (
  uuid: string,
  fault: GpuFault,
  what: string,
  release: GpuRelease | null = null,
  answers: string[] = [],
): Outcome => ({ uuid, answers, release, fault, message: `${what} ${GPU_FAULTS[fault]}` });

const planned = ({ uuid, blocks }: Gpu): Step => ({
  step: "gpu_challenge",
  target: uuid,
  outcome: "planned",
  message: `Muster would ask for ${blocks.length} blocks of the memory of GPU ${uuid}, then zero and free the memory.`,
  evidence: {},
});

function stepOf({ uuid, answers, release, fault, message }: Outcome): Step {
  const isZero = release !== null && release.nonzero_units === 0;
  const said =
    fault !== null
      ? message
      : isZero
        ? `GPU ${uuid} answered ${answers.length} questions, and its memory was zeroed.`
        : `GPU ${uuid} has memory that is not zero after the zeroing. ${GPU_FAULTS.memory_mismatch}`;
  return {
    step: "gpu_challenge",
    target: uuid,
    outcome: fault === null && isZero ? "ok" : "failed",
    message: said.slice(0, 512),
    evidence: {
      answers: answers.length,
      ...(fault === null ? {} : { fault }),
      ...(release === null ? {} : { ...release }),
    },
  };
}
