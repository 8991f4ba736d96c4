import { createCipheriv, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execaSync } from "execa";
import { describe, expect, it } from "vitest";
import { chunkNonce } from "../../shared/gpu-memory.ts";
import { runKernel } from "../../test/fakes/gpu/ptx-interpreter.ts";
import { ptxasOfHost } from "../../test/support/ptxas.ts";
import { kernelsPtx } from "./cuda-kernels.ts";
import { KERNEL_NAMES } from "./kernel-calls.ts";

const PTX = kernelsPtx();
const AT = 0x7f00_0000_0000n;
const FOUND = 0x10_0000n;
const THREADS = 32;

const seed = randomBytes(32);
const nonce = chunkNonce(3, 5);
const stream = (blocks: number, counter = 0): Buffer => {
  const first = Buffer.alloc(4);
  first.writeUInt32LE(counter);
  return createCipheriv("chacha20", seed, Buffer.concat([first, nonce])).update(Buffer.alloc(blocks * 64));
};
const streamParameters = (count: number, counter = 0) => ({
  at: AT,
  count,
  counter,
  ...Object.fromEntries([0, 1, 2, 3, 4, 5, 6, 7].map((word) => [`key${word}`, seed.readUInt32LE(word * 4)])),
  ...Object.fromEntries([0, 1, 2].map((word) => [`nonce${word}`, Buffer.from(nonce).readUInt32LE(word * 4)])),
});
const groups = (count: number): number => Math.ceil(count / THREADS);

function check(bytes: Buffer, count: number, counter: number, first: bigint): { count: bigint; first: bigint } {
  const found = Buffer.from([...Buffer.alloc(8), ...Buffer.alloc(8, 0xff)]);
  runKernel(PTX, {
    kernel: KERNEL_NAMES.check,
    groups: groups(count),
    threads: THREADS,
    parameters: { ...streamParameters(count, counter), first, found: FOUND },
    memory: [
      { address: AT, bytes },
      { address: FOUND, bytes: found },
    ],
  });
  return { count: found.readBigUInt64LE(0), first: found.readBigUInt64LE(8) };
}

function scan(bytes: Buffer, marker: number): { used: number; hits: number } {
  const found = Buffer.alloc(16);
  runKernel(PTX, {
    kernel: KERNEL_NAMES.scan,
    groups: groups(bytes.length / 64),
    threads: THREADS,
    parameters: { at: AT, count: bytes.length / 64, marker, found: FOUND },
    memory: [
      { address: AT, bytes },
      { address: FOUND, bytes: found },
    ],
  });
  return { used: Number(found.readBigUInt64LE(0)), hits: Number(found.readBigUInt64LE(8)) };
}

describe("the fill kernel", () => {
  it.each([
    [1, 0],
    [40, 0],
    [65, 4_000_000_000],
    [3, 0xffff_fffe],
  ])("writes %i blocks of the ChaCha20 stream of node:crypto, from counter %i, and nothing else", (count, counter) => {
    const bytes = Buffer.alloc((count + 2) * 64, 0xaa);
    runKernel(PTX, {
      kernel: KERNEL_NAMES.fill,
      groups: groups(count) + 1,
      threads: THREADS,
      parameters: streamParameters(count, counter),
      memory: [{ address: AT, bytes }],
    });
    // The library node:crypto carries an overflow of ChaCha20's block counter into the nonce, so the test compares only blocks before the overflow.
    const comparable = Math.min(count, 2 ** 32 - counter) * 64;
    expect(bytes.subarray(0, comparable).equals(stream(count, counter).subarray(0, comparable))).toBe(true);
    expect(bytes.subarray(count * 64)).toEqual(Buffer.alloc(128, 0xaa));
  });
});

describe("the check kernel", () => {
  it("finds nothing in the stream itself", () => {
    expect(check(stream(70, 9), 70, 9, 0n)).toEqual({ count: 0n, first: (1n << 64n) - 1n });
  });

  it("finds each block with one flipped bit, and tells the place of the first one", () => {
    for (const bits of [[0], [64 * 8 * 69 + 511], [12_345, 12_346], [64 * 8 * 40, 64 * 8 * 41 + 7, 64 * 8 * 3 + 100]]) {
      const bytes = stream(70);
      for (const bit of bits) bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const blocks = [...new Set(bits.map((bit) => Math.floor(bit / 512)))].sort((a, b) => a - b);
      const first = 1n << 40n;
      expect(check(bytes, 70, 0, first)).toEqual({
        count: BigInt(blocks.length),
        first: first + BigInt((blocks[0] ?? 0) * 64),
      });
    }
  });

  it("finds every block of another counter", () => {
    expect(check(stream(40, 1), 40, 0, 0n)).toEqual({ count: 40n, first: 0n });
  });
});

describe("the scan kernel", () => {
  it("counts units that are not zero, and units of the marker", () => {
    const bytes = Buffer.alloc(64 * 40);
    expect(scan(bytes, 0xdead_beef)).toEqual({ used: 0, hits: 0 });
    bytes[17] = 1;
    bytes[bytes.length - 1] = 0x80;
    for (const word of [0, 1, 2, 3]) bytes.writeUInt32LE(0xdead_beef, 640 + word * 4);
    for (const word of [0, 1, 2]) bytes.writeUInt32LE(0xdead_beef, 960 + word * 4);
    expect(scan(bytes, 0xdead_beef)).toEqual({ used: 4, hits: 1 });
  });

  it("counts every unit of the stream", () => {
    expect(scan(stream(40), 1)).toEqual({ used: 160, hits: 0 });
  });
});

describe("the interpreter", () => {
  const run = (body: string, memory: { address: bigint; bytes: Buffer }[] = []) =>
    runKernel(`.visible .entry k(\n)\n{\n.reg .b32 %a;\n.reg .b64 %b;\n${body}\n}`, {
      kernel: "k",
      groups: 1,
      threads: 1,
      parameters: {},
      memory,
    });
  it.each([
    ["an unknown instruction", "mul.f32 %a, %a, %a;\nret;", /unknown instruction/],
    ["an undeclared register", "mov.u32 %z, 1;\nret;", /not declared/],
    ["a register that nothing wrote", "add.u32 %a, %a, 1;\nret;", /before it is written/],
    ["an address outside of the memory", "mov.u64 %b, 64;\nred.global.add.u64 [%b], %b;\nret;", /outside/],
    ["an address that is not aligned", "mov.u64 %b, 4;\nred.global.add.u64 [%b], %b;\nret;", /not aligned/],
    ["a jump to nowhere", "bra NOWHERE;\nret;", /no label/],
    ["a kernel without an end", "mov.u32 %a, 1;", /beyond its last/],
  ])("refuses %s", (_what, body, message) => {
    expect(() => run(body, [{ address: 0n, bytes: Buffer.alloc(64) }])).toThrow(message);
  });
});

const ptxas = ptxasOfHost();
describe.skipIf(ptxas === null)("the kernels' text (SKIPPED without ptxas, NVIDIA's assembler)", () => {
  const known = ptxas === null ? "" : execaSync(ptxas, ["--help"]).stdout;
  const targets = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"].filter((one) =>
    known.includes(`'${one}'`),
  );

  it.each(targets)("is assembled for %s without spilled registers", (target) => {
    const folder = mkdtempSync(join(tmpdir(), "muster-ptx-"));
    try {
      const file = join(folder, "kernels.ptx");
      writeFileSync(file, PTX);
      const ran = execaSync(ptxas ?? "", ["-v", `-arch=${target}`, file, "-o", join(folder, "kernels.cubin")]);
      const spills = [...`${ran.stdout}${ran.stderr}`.matchAll(/(\d+) bytes spill stores/g)].map(([, bytes]) => bytes);
      expect(spills).toEqual(["0", "0", "0"]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("is assembled for more than one target", () => {
    expect(targets.length).toBeGreaterThan(1);
  });
});
