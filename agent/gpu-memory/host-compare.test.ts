import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { runKernel } from "../../test/fakes/gpu/ptx-interpreter.ts";
import { kernelsPtx } from "./cuda-kernels.ts";
import { countUnits, differingBlocks, streamFrom } from "./host-compare.ts";
import { KERNEL_NAMES } from "./kernel-calls.ts";

const BLOCKS = 64;
const BYTES = BLOCKS * 64;

function disturbed(bytes: Buffer, times: number): Buffer {
  const other = Buffer.from(bytes);
  for (let time = 0; time < times; time += 1) {
    const at = randomBytes(2).readUInt16LE() % BYTES;
    other[at] = (other[at] ?? 0) ^ 0x40;
  }
  return other;
}

describe("the host's computation", () => {
  it("finds the same differences as the check kernel", () => {
    for (let round = 0; round < 8; round += 1) {
      const [key, nonce, counter] = [randomBytes(32), randomBytes(12), randomBytes(2).readUInt16LE()];
      const expected = streamFrom(key, nonce, counter).update(Buffer.alloc(BYTES));
      const memory = disturbed(expected, round);
      const found = Buffer.from([...Buffer.alloc(8), ...Buffer.alloc(8, 0xff)]);
      const words = (name: string, from: Buffer) =>
        Array.from({ length: from.length / 4 }, (_, index) => [`${name}${index}`, from.readUInt32LE(index * 4)]);
      runKernel(kernelsPtx(), {
        kernel: KERNEL_NAMES.check,
        groups: 2,
        threads: 32,
        parameters: {
          ...Object.fromEntries([...words("key", key), ...words("nonce", nonce)]),
          ...{ at: 0x1_0000n, count: BLOCKS, counter, first: 0n, found: 0x90_0000n },
        },
        memory: [
          { address: 0x1_0000n, bytes: memory },
          { address: 0x90_0000n, bytes: found },
        ],
      });
      const { blocks, first } = differingBlocks(expected, memory);
      expect(blocks).toBe(Number(found.readBigUInt64LE(0)));
      expect(first === null ? 2n ** 64n - 1n : BigInt(first * 64)).toBe(found.readBigUInt64LE(8));
    }
  });

  it("counts the same units as the scan kernel", () => {
    const marked = Buffer.alloc(BYTES);
    marked.fill(0xab, 320, 640);
    for (const bytes of [Buffer.alloc(BYTES), disturbed(Buffer.alloc(BYTES), 9), marked, disturbed(marked, 40)]) {
      const found = Buffer.alloc(16);
      runKernel(kernelsPtx(), {
        kernel: KERNEL_NAMES.scan,
        groups: 2,
        threads: 32,
        parameters: { at: 0x1_0000n, count: BLOCKS, marker: 0xabababab, found: 0x90_0000n },
        memory: [
          { address: 0x1_0000n, bytes },
          { address: 0x90_0000n, bytes: found },
        ],
      });
      const { nonzero, marked } = countUnits(bytes, 0xabababab);
      expect([nonzero, marked]).toEqual([Number(found.readBigUInt64LE(0)), Number(found.readBigUInt64LE(8))]);
    }
  });
});
