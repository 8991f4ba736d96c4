import { createHmac, randomBytes, randomInt, randomUUID } from "node:crypto";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { AnswerChecker } from "../../hub/gpu-memory/answer-checker.ts";
import { drawBlocks } from "../../hub/gpu-memory/draw-blocks.ts";
import { type AnswersToCheck, sampleBlockBytes } from "../../hub/gpu-memory/expected-answers.ts";
import { answerPrefix, MOST_SAMPLE_BLOCKS } from "../../shared/gpu-memory.ts";
import type { Figure } from "./figure.ts";

const GPUS = 8;
/** The number of bytes in an NVIDIA H200 that the agent's worker can allocate. */
const ALLOCATED_BYTES = 142_550 * 2 ** 20;
const ROUNDS = 20;
const MOST_CPU_MS = 1_000;

/**
 * Measures how long a hub needs to check the answers of eight GPUs of 139 GiB to a GPU memory challenge. The benchmark does not measure the hub's
 * first check of answers, which also starts a thread of the hub.
 */
export async function measureGpuAnswers(): Promise<Figure[]> {
  const host = answeringHost();
  const checker = new AnswerChecker();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  try {
    await checker.check(host);
    delay.enable();
    const cpu = process.cpuUsage();
    const began = performance.now();
    for (let round = 0; round < ROUNDS; round += 1) {
      const checked = await checker.check(host);
      if (checked.some(({ asked, correct }) => asked !== correct)) throw new Error("an answer was not correct");
    }
    const wall = (performance.now() - began) / ROUNDS;
    const { user, system } = process.cpuUsage(cpu);
    delay.disable();
    return [
      {
        name: "GPU answers of a host with 8 GPUs: processor time",
        value: (user + system) / 1_000 / ROUNDS,
        unit: "ms",
        note: `${GPUS * MOST_SAMPLE_BLOCKS} blocks of 64 KiB, in a thread`,
        atMost: MOST_CPU_MS,
      },
      { name: "GPU answers of a host with 8 GPUs: time", value: wall, unit: "ms", note: `mean of ${ROUNDS}` },
      {
        name: "event loop's delay meanwhile, p99",
        value: delay.percentile(99) / 1e6,
        unit: "ms",
        note: "the timer's own interval of 1 ms included",
      },
    ];
  } finally {
    await checker.close();
  }
}

function answeringHost(): AnswersToCheck {
  const order = { fill_task_id: randomUUID(), seed: randomBytes(32).toString("hex") };
  const nonce = randomBytes(16).toString("hex");
  const gpus = Array.from({ length: GPUS }, (_, gpu) => {
    const uuid = `GPU-00000000-0000-0000-0000-${String(gpu).padStart(12, "0")}`;
    const blocks = drawBlocks(ALLOCATED_BYTES, MOST_SAMPLE_BLOCKS, randomInt);
    const answers = blocks.map((block) =>
      createHmac("sha256", Buffer.from(nonce, "hex"))
        .update(answerPrefix(order.fill_task_id, uuid, block))
        .update(sampleBlockBytes(order.seed, gpu, block))
        .digest("base64url"),
    );
    return { gpu, uuid, blocks, answers };
  });
  return { ...order, nonce, gpus };
}
