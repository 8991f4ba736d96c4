import { SCAN_UNIT_BYTES, STREAM_BLOCK_BYTES } from "../../shared/gpu-memory.ts";
import { CONSTANTS, DOUBLE_ROUNDS, KERNEL_NAMES, KERNEL_PARAMETERS, type KernelKind, words } from "./kernel-calls.ts";

const UNITS_OF_BLOCK = STREAM_BLOCK_BYTES / SCAN_UNIT_BYTES;

/**
 * In the text of the GPU kernels, a `row` has 16 bytes: four words of ChaCha20's state, or one unit of the GPU kernel `scan`. With single words in
 * place of rows of 16 bytes, the compiler of ROCm 5.2 needed more than a minute to compile the GPU kernels.
 */
const TYPES = `#ifdef __cplusplus
extern "C" {
#endif
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u32 row __attribute__((vector_size(${SCAN_UNIT_BYTES})));
`;

/** Lines of C that add one row to another, mix the sum into the row `into`, and rotate the words of `into` by `left` bits. */
const step = (to: string, from: string, into: string, left: number): string[] => [
  `${to} += ${from};`,
  `${into} ^= ${to};`,
  `${into} = ${into} << ${left} | ${into} >> ${32 - left};`,
];
/** Lines of C that compute four quarter rounds of ChaCha20, one for each column of the state (RFC 8439, 2.1). */
const quarters = (): string[] => [
  ...step("a", "b", "d", 16),
  ...step("c", "d", "b", 12),
  ...step("a", "b", "d", 8),
  ...step("c", "d", "b", 7),
];
/** A line of C that moves each word of a row by `places` places to the left, so that the diagonals of ChaCha20's state become its columns. */
const turned = (name: string, places: number): string =>
  `${name} = (row){${words(4)
    .map((word) => `${name}[${(word + places) % 4}]`)
    .join(", ")}};`;

const INITIAL = {
  a: CONSTANTS.map((constant) => `0x${constant.toString(16)}u`),
  b: words(4).map((word) => `key${word}`),
  c: words(4).map((word) => `key${word + 4}`),
  d: ["counter + index", ...words(3).map((word) => `nonce${word}`)],
} as const;
const ROWS = Object.entries(INITIAL);

/** Lines of C that compute the ChaCha20 block with the number `counter + index` in the rows `a` to `d` (RFC 8439, 2.3). */
const streamBlock = (): string[] => [
  ...ROWS.map(([name, initial]) => `row ${name} = {${initial.join(", ")}};`),
  `for (int round = 0; round < ${DOUBLE_ROUNDS}; round++) {`,
  ...quarters(),
  ...[turned("b", 1), turned("c", 2), turned("d", 3)],
  ...quarters(),
  ...[turned("b", 3), turned("c", 2), turned("d", 1)],
  "}",
  ...ROWS.map(([name, initial]) => `${name} += (row){${initial.join(", ")}};`),
];

/**
 * Lines of C that find the block of 64 bytes that a GPU thread works on. A GPU thread whose number is not below `count`, the number of blocks, does
 * nothing.
 */
const ownBlock = (): string[] => [
  "u32 index = blockIdx.x * blockDim.x + threadIdx.x;",
  "if (index >= count) return;",
  `row *own = (row *)at + (u64)index * ${UNITS_OF_BLOCK};`,
];

function kernel(kind: KernelKind, body: readonly string[]): string {
  const parameters = KERNEL_PARAMETERS[kind].join(", ");
  return `__global__ void ${KERNEL_NAMES[kind]}(${parameters}) {\n${body.map((line) => `  ${line}`).join("\n")}\n}\n`;
}

/** Each thread of the GPU kernel `fill` writes one block of the ChaCha20 stream into GPU memory. */
const fill = (): string =>
  kernel("fill", [...ownBlock(), ...streamBlock(), ...ROWS.map(([name], number) => `own[${number}] = ${name};`)]);

/**
 * Each thread of the GPU kernel `check` compares one block of GPU memory with one block of the ChaCha20 stream. The first 8 bytes of `found` count
 * the blocks of GPU memory that differ from the ChaCha20 stream. The second 8 bytes of `found` hold the place of the first block of GPU memory that
 * differs from the stream.
 */
const check = (): string =>
  kernel("check", [
    ...ownBlock(),
    ...streamBlock(),
    `row bits = ${ROWS.map(([name], number) => `(own[${number}] ^ ${name})`).join(" | ")};`,
    "if ((bits[0] | bits[1] | bits[2] | bits[3]) == 0) return;",
    "atomicAdd((u64 *)found, 1ull);",
    `atomicMin((u64 *)found + 1, first + (u64)index * ${STREAM_BLOCK_BYTES});`,
  ]);

/**
 * Each thread of the GPU kernel `scan` reads four units of 16 bytes of GPU memory. The GPU kernel `scan` counts the units of 16 bytes that are not
 * zero, and the units that consist only of the random number `marker`.
 */
const scan = (): string =>
  kernel("scan", [
    ...ownBlock(),
    "u32 used = 0;",
    "u32 hits = 0;",
    `for (int unit = 0; unit < ${UNITS_OF_BLOCK}; unit++) {`,
    "row bits = own[unit];",
    "row other = bits ^ (row){marker, marker, marker, marker};",
    "used += (bits[0] | bits[1] | bits[2] | bits[3]) != 0;",
    "hits += (other[0] | other[1] | other[2] | other[3]) == 0;",
    "}",
    "if (used != 0) atomicAdd((u64 *)found, (u64)used);",
    "if (hits != 0) atomicAdd((u64 *)found + 1, (u64)hits);",
  ]);

/**
 * AMD's compiler library compiles the text of the three GPU kernels, which is HIP's C, on the host for the host's GPU. With definitions for HIP's own
 * keywords, the text of the GPU kernels is also valid C, so the tests run it on the host's processor.
 */
export const kernelsHip = (): string =>
  [TYPES, fill(), check(), scan(), "#ifdef __cplusplus", "}", "#endif", ""].join("\n");
