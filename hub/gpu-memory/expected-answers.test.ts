import { createCipheriv, createHmac, randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { CHUNK_BYTES, SAMPLE_BLOCK_BYTES } from "../../shared/gpu-memory.ts";
import { AnswerChecker } from "./answer-checker.ts";
import { type AnswersToCheck, checkAnswers, sampleBlockBytes } from "./expected-answers.ts";

const UUID = "GPU-00112233-4455-6677-8899-aabbccddeeff";
const BLOCKS_IN_CHUNK = CHUNK_BYTES / SAMPLE_BLOCK_BYTES;
const seed = randomBytes(32).toString("hex");
const fillTaskId = randomUUID();
const nonce = randomBytes(16).toString("hex");

/** Computes a host's answer for one sample block, without the code under test. */
const answer = (block: number, bytes: Buffer, of: { uuid?: string; taskId?: string; nonce?: string } = {}): string =>
  createHmac("sha256", Buffer.from(of.nonce ?? nonce, "hex"))
    .update(`${of.taskId ?? fillTaskId}|${of.uuid ?? UUID}|${block}|`)
    .update(bytes)
    .digest("base64url");
const asked = (blocks: number[], answers: string[]): AnswersToCheck => ({
  fill_task_id: fillTaskId,
  seed,
  nonce,
  gpus: [{ gpu: 2, uuid: UUID, blocks, answers }],
});

describe("sampleBlockBytes", () => {
  it.each([0, 1, BLOCKS_IN_CHUNK - 1, BLOCKS_IN_CHUNK, 5 * BLOCKS_IN_CHUNK + 77])(
    "are the bytes of one long stream of the chunk, at block %i",
    (block) => {
      const iv = Buffer.alloc(16);
      iv.writeUInt32LE(2, 4);
      iv.writeBigUInt64LE(BigInt(Math.floor(block / BLOCKS_IN_CHUNK)), 8);
      iv.writeUInt32LE((block % BLOCKS_IN_CHUNK) * (SAMPLE_BLOCK_BYTES / 64), 0);
      const stream = createCipheriv("chacha20", Buffer.from(seed, "hex"), iv);
      expect(sampleBlockBytes(seed, 2, block).equals(stream.update(Buffer.alloc(SAMPLE_BLOCK_BYTES)))).toBe(true);
    },
  );

  it("differ between GPUs, chunks, blocks and seeds", () => {
    const other = randomBytes(32).toString("hex");
    const places: [string, number, number][] = [
      [seed, 0, 0],
      [seed, 1, 0],
      [seed, 0, 1],
      [seed, 0, BLOCKS_IN_CHUNK],
      [seed, 1, BLOCKS_IN_CHUNK],
      [other, 0, 0],
    ];
    expect(new Set(places.map((place) => sampleBlockBytes(...place).toString("hex"))).size).toBe(places.length);
  });
});

describe("checkAnswers", () => {
  const blocks = [3, 70_000];
  const right = blocks.map((block) => answer(block, sampleBlockBytes(seed, 2, block)));

  it("counts the right answers", () => {
    expect(checkAnswers(asked(blocks, right))).toEqual([{ uuid: UUID, asked: 2, correct: 2 }]);
  });

  it.each([
    ["missing answers", () => []],
    ["answers in another order", () => right.toReversed()],
    ["zeroed memory", () => blocks.map((block) => answer(block, Buffer.alloc(SAMPLE_BLOCK_BYTES)))],
    ["the memory of another GPU", () => blocks.map((block) => answer(block, sampleBlockBytes(seed, 1, block)))],
    ["another challenge", () => answersFor({ nonce: randomBytes(16).toString("hex") })],
    ["another task", () => answersFor({ taskId: randomUUID() })],
    ["another GPU's name", () => answersFor({ uuid: UUID.replace("ff", "fe") })],
  ])("takes no answer with %s as right", (_what, answers) => {
    expect(checkAnswers(asked(blocks, answers()))).toEqual([{ uuid: UUID, asked: 2, correct: 0 }]);
  });

  it("finds one flipped bit in a block", () => {
    const bytes = sampleBlockBytes(seed, 2, 3);
    bytes[40_000] = (bytes[40_000] ?? 0) ^ 1;
    expect(checkAnswers(asked(blocks, [answer(3, bytes), right[1] ?? ""]))).toMatchObject([{ correct: 1 }]);
  });

  const answersFor = (of: Parameters<typeof answer>[2]) =>
    blocks.map((block) => answer(block, sampleBlockBytes(seed, 2, block), of));
});

describe("AnswerChecker", () => {
  const question = asked([9], [answer(9, sampleBlockBytes(seed, 2, 9))]);

  it("checks in its thread, and starts the thread again after it was idle", async () => {
    const checker = new AnswerChecker(1);
    for (const pause of [0, 50]) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      expect(await checker.check(question)).toEqual([{ uuid: UUID, asked: 1, correct: 1 }]);
    }
    await checker.close();
  });

  it("leaves the event loop free while it computes", async () => {
    const checker = new AnswerChecker();
    const blocks = Array.from({ length: 64 }, (_, index) => index);
    const answers = blocks.map((block) => answer(block, sampleBlockBytes(seed, 2, block)));
    let turns = 0;
    const ticking = setInterval(() => {
      turns += 1;
    }, 0);
    const [checked] = await checker.check(asked(blocks, answers));
    clearInterval(ticking);
    expect(checked).toEqual({ uuid: UUID, asked: 64, correct: 64 });
    expect(turns).toBeGreaterThan(0);
    await checker.close();
  });

  it("answers each of many challenges, and refuses those beyond its limit and after its end", async () => {
    const checker = new AnswerChecker();
    const ends = await Promise.allSettled(Array.from({ length: 70 }, () => checker.check(question)));
    expect(ends.filter(({ status }) => status === "fulfilled").length).toBe(64);
    const refused = ends.filter((end) => end.status === "rejected").map((end) => String(end.reason));
    expect(refused.length).toBe(6);
    expect(refused[0]).toMatch(/Try again in a minute/);
    const waiting = checker.check(question);
    const lost = expect(waiting).rejects.toThrow(/hub stops/);
    await checker.close();
    await lost;
    await expect(checker.check(question)).rejects.toThrow(/hub stops/);
  });
});
