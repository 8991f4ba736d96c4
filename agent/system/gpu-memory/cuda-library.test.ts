import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GpuHost, hasCompiler } from "../../../test/fakes/gpu/gpu-host.ts";
import { runKernel } from "../../../test/fakes/gpu/ptx-interpreter.ts";
import { kernelsPtx } from "../../gpu-memory/cuda-kernels.ts";
import { KERNEL_NAMES } from "../../gpu-memory/kernel-calls.ts";
import { type Cuda, openCuda } from "./cuda-library.ts";

const BLOCKS = 96;
const BYTES = BLOCKS * 64;
const THREADS = 32;
const STREAM = ["at", "count", "counter", ...words("key", 8), ...words("nonce", 3)];
const PARAMETERS = {
  fill: STREAM,
  check: [...STREAM, "first", "found"],
  scan: ["at", "count", "marker", "found"],
} as const;
const LONG = new Set(["at", "first", "found"]);

function words(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}${index}`);
}

/** The time limit, in milliseconds, of a hook that compiles the stand-in for NVIDIA's driver library. */
const HOOK_MS = 120_000;

/**
 * The tests of GPU workers use kernels in C, in a stand-in for NVIDIA's driver library. The suite shows that the GPU kernels in C leave the same
 * bytes as the kernels' PTX text. The suite uses random keys, random memory, and memory with only a few wrong bytes.
 */
describe.skipIf(!hasCompiler)("the driver library of the tests (SKIPPED without gcc)", () => {
  let host: GpuHost;
  let cuda: Cuda;
  beforeAll(() => {
    host = new GpuHost();
    cuda = openCuda(host.path("usr/lib/x86_64-linux-gnu/libcuda.so.1"));
  }, HOOK_MS);
  afterAll(() => host.remove());

  function inLibrary(kind: keyof typeof PARAMETERS, values: Record<string, bigint>, bytes: Buffer, found: Buffer) {
    const module = Buffer.alloc(8);
    cuda.call("cuModuleLoadDataEx", [module, kernelsPtx(), 0, null, null]);
    const kernel = cuda.get("cuModuleGetFunction", module.readBigUInt64LE(), KERNEL_NAMES[kind]);
    const [at, counts] = [cuda.get("cuMemAlloc_v2", BYTES), cuda.get("cuMemAlloc_v2", 16)];
    cuda.call("cuMemcpyHtoD_v2", [at, bytes, BYTES]);
    cuda.call("cuMemcpyHtoD_v2", [counts, found, 16]);
    const parameters = PARAMETERS[kind].map((name) => {
      const value = name === "at" ? at : name === "found" ? counts : (values[name] ?? 0n);
      const buffer = Buffer.alloc(LONG.has(name) ? 8 : 4);
      if (LONG.has(name)) buffer.writeBigUInt64LE(value);
      else buffer.writeUInt32LE(Number(value));
      return buffer;
    });
    cuda.call("cuLaunchKernel", [kernel, BLOCKS / THREADS, 1, 1, THREADS, 1, 1, 0, 0n, parameters, null]);
    const after = { bytes: Buffer.alloc(BYTES), found: Buffer.alloc(16) };
    cuda.call("cuMemcpyDtoH_v2", [after.bytes, at, BYTES]);
    cuda.call("cuMemcpyDtoH_v2", [after.found, counts, 16]);
    for (const address of [at, counts]) cuda.call("cuMemFree_v2", [address]);
    return after;
  }

  function inInterpreter(kind: keyof typeof PARAMETERS, values: Record<string, bigint>, bytes: Buffer, found: Buffer) {
    const after = { bytes: Buffer.from(bytes), found: Buffer.from(found) };
    const given = { ...values, at: 0x1_0000n, found: 0x90_0000n };
    runKernel(kernelsPtx(), {
      kernel: KERNEL_NAMES[kind],
      groups: BLOCKS / THREADS,
      threads: THREADS,
      parameters: Object.fromEntries(PARAMETERS[kind].map((name) => [name, given[name as keyof typeof given] ?? 0n])),
      memory: [
        { address: given.at, bytes: after.bytes },
        { address: given.found, bytes: after.found },
      ],
    });
    return after;
  }

  const streamValues = (): Record<string, bigint> => ({
    count: BigInt(BLOCKS),
    counter: BigInt(randomBytes(4).readUInt32LE()),
    first: BigInt(randomBytes(4).readUInt32LE()),
    ...Object.fromEntries(
      [...words("key", 8), ...words("nonce", 3)].map((name) => [name, BigInt(randomBytes(4).readUInt32LE())]),
    ),
  });
  const same = (kind: keyof typeof PARAMETERS, values: Record<string, bigint>, bytes: Buffer, found: Buffer) => {
    const [library, text] = [inLibrary(kind, values, bytes, found), inInterpreter(kind, values, bytes, found)];
    expect(library.bytes.equals(text.bytes)).toBe(true);
    expect(library.found).toEqual(text.found);
    return text;
  };

  it("fills and compares as the kernels' text does", () => {
    for (let round = 0; round < 5; round += 1) {
      const values = streamValues();
      const filled = same("fill", values, randomBytes(BYTES), Buffer.alloc(16)).bytes;
      const none = Buffer.from([...Buffer.alloc(8), ...Buffer.alloc(8, 0xff)]);
      expect(same("check", values, filled, none).found).toEqual(none);
      for (const place of randomBytes(4)) filled[place * 20] = (filled[place * 20] ?? 0) ^ 0x10;
      expect(same("check", values, filled, none).found.readBigUInt64LE()).toBeGreaterThan(0n);
      same("check", values, randomBytes(BYTES), none);
    }
  });

  it("counts units as the kernels' text does", () => {
    const sparse = Buffer.alloc(BYTES);
    for (const place of randomBytes(12)) sparse.writeUInt32LE(0xabababab, place * 20);
    sparse.fill(0xab, 1024, 1024 + 160);
    for (const bytes of [sparse, Buffer.alloc(BYTES), Buffer.alloc(BYTES, 0xab), randomBytes(BYTES)])
      for (const marker of [0n, 0xababababn, 7n])
        same("scan", { count: BigInt(BLOCKS), marker }, bytes, Buffer.alloc(16));
  });
});
