import { SCAN_UNIT_BYTES, STREAM_BLOCK_BYTES } from "../../shared/gpu-memory.ts";
import { CONSTANTS, DOUBLE_ROUNDS, KERNEL_NAMES, KERNEL_PARAMETERS, QUARTERS, words } from "./kernel-calls.ts";

const load = (register: string, parameter: string, type: "u32" | "u64"): string =>
  `ld.param.${type} %${register}, [${parameter}];`;

const step = (to: number, from: number, into: number, left: number): string[] => [
  `add.u32 %s${to}, %s${to}, %s${from};`,
  `xor.b32 %s${into}, %s${into}, %s${to};`,
  `shf.l.wrap.b32 %s${into}, %s${into}, %s${into}, ${left};`,
];
const quarter = ([a, b, c, d]: readonly [number, number, number, number]): string[] => [
  ...step(a, b, d, 16),
  ...step(c, d, b, 12),
  ...step(a, b, d, 8),
  ...step(c, d, b, 7),
];

/**
 * Returns the PTX lines that load one word of ChaCha20's initial state. A GPU kernel loads the initial state twice, because a register for each
 * initial word would slow the kernel down.
 */
const initialWord = (word: number): { readonly load: string[]; readonly operand: string } => {
  const constant = CONSTANTS[word];
  if (constant !== undefined) return { load: [], operand: `0x${constant.toString(16)}` };
  if (word === 12) return { load: [], operand: "%counter" };
  const parameter = word < 12 ? `key${word - 4}` : `nonce${word - 13}`;
  return { load: [load("initial", parameter, "u32")], operand: "%initial" };
};

/** Returns the PTX lines that compute a ChaCha20 block in the registers %s0 to %s15 (RFC 8439, 2.3). */
const streamBlock = (): string[] => [
  ...words(16).flatMap((word) => {
    const initial = initialWord(word);
    return [...initial.load, `mov.u32 %s${word}, ${initial.operand};`];
  }),
  `mov.u32 %round, ${DOUBLE_ROUNDS};`,
  "ROUND:",
  ...QUARTERS.flatMap(quarter),
  "sub.u32 %round, %round, 1;",
  "setp.ne.u32 %again, %round, 0;",
  "@%again bra ROUND;",
  ...words(16).flatMap((word) => {
    const initial = initialWord(word);
    return [...initial.load, `add.u32 %s${word}, %s${word}, ${initial.operand};`];
  }),
];

/**
 * Returns the PTX lines that put the number of the GPU thread into %index. A GPU thread whose number is not below `count`, the number of blocks, does
 * nothing.
 */
const ownIndex = (): string[] => [
  "mov.u32 %group, %ctaid.x;",
  "mov.u32 %width, %ntid.x;",
  "mov.u32 %lane, %tid.x;",
  "mad.lo.u32 %index, %group, %width, %lane;",
  load("count", "count", "u32"),
  "setp.ge.u32 %beyond, %index, %count;",
  "@%beyond bra DONE;",
];

/**
 * Each GPU thread handles one block of 64 bytes of GPU memory. The PTX lines put the address of the thread's block into %at, and the block's distance
 * from the first byte into %distance.
 */
const ownAddress = (): string[] => [
  load("at", "at", "u64"),
  "cvta.to.global.u64 %at, %at;",
  `mul.wide.u32 %distance, %index, ${STREAM_BLOCK_BYTES};`,
  "add.u64 %at, %at, %distance;",
];

const REGISTERS = [
  ".reg .pred %again, %beyond, %same, %differs, %marked, %silent;",
  ".reg .b32 %s<16>, %m<4>, %initial, %counter, %round, %group, %width, %lane, %index, %count, %difference, %one, %marker, %used, %hits;",
  ".reg .b64 %at, %distance, %first, %found, %add;",
];

function kernel(kind: keyof typeof KERNEL_NAMES, body: readonly string[]): string {
  const parameters = KERNEL_PARAMETERS[kind].map((one) => `  .param .${one}`).join(",\n");
  const text = [...REGISTERS, ...body, "DONE:", "ret;"].map((line) => `  ${line}`).join("\n");
  return `.visible .entry ${KERNEL_NAMES[kind]}(\n${parameters}\n)\n{\n${text}\n}\n`;
}

const streamOfThread = (): string[] => [
  ...ownIndex(),
  load("counter", "counter", "u32"),
  "add.u32 %counter, %counter, %index;",
  ...streamBlock(),
  ...ownAddress(),
];

const fill = (): string =>
  kernel("fill", [
    ...streamOfThread(),
    ...words(4).map((row) => {
      const [a, b, c, d] = words(4).map((word) => `%s${row * 4 + word}`);
      return `st.global.v4.u32 [%at+${row * 16}], {${a}, ${b}, ${c}, ${d}};`;
    }),
  ]);

/**
 * Each thread of the GPU kernel `check` compares one block of the ChaCha20 stream with one block of GPU memory. The first 8 bytes of `found` count
 * the blocks of GPU memory that differ from the ChaCha20 stream. The second 8 bytes of `found` hold the place of the first block of GPU memory that
 * differs from the stream.
 */
const check = (): string =>
  kernel("check", [
    ...streamOfThread(),
    "mov.u32 %difference, 0;",
    ...words(4).flatMap((row) => [
      `ld.global.v4.u32 {%m0, %m1, %m2, %m3}, [%at+${row * 16}];`,
      ...words(4).flatMap((word) => [
        `xor.b32 %m${word}, %m${word}, %s${row * 4 + word};`,
        `or.b32 %difference, %difference, %m${word};`,
      ]),
    ]),
    "setp.eq.u32 %same, %difference, 0;",
    "@%same bra DONE;",
    load("found", "found", "u64"),
    "cvta.to.global.u64 %found, %found;",
    load("first", "first", "u64"),
    "add.u64 %first, %first, %distance;",
    "mov.u64 %add, 1;",
    "red.global.add.u64 [%found], %add;",
    "red.global.min.u64 [%found+8], %first;",
  ]);

/**
 * Each thread of the GPU kernel `scan` reads four units of 16 bytes of GPU memory. The GPU kernel `scan` counts the 16-byte units of GPU memory that
 * are not zero, and those that consist only of the random number `marker`.
 */
const scan = (): string =>
  kernel("scan", [
    ...ownIndex(),
    ...ownAddress(),
    load("marker", "marker", "u32"),
    "mov.u32 %used, 0;",
    "mov.u32 %hits, 0;",
    ...words(STREAM_BLOCK_BYTES / SCAN_UNIT_BYTES).flatMap((unit) => [
      `ld.global.v4.u32 {%m0, %m1, %m2, %m3}, [%at+${unit * SCAN_UNIT_BYTES}];`,
      "or.b32 %difference, %m0, %m1;",
      "or.b32 %difference, %difference, %m2;",
      "or.b32 %difference, %difference, %m3;",
      "setp.ne.u32 %differs, %difference, 0;",
      "selp.u32 %one, 1, 0, %differs;",
      "add.u32 %used, %used, %one;",
      ...words(4).map((word) => `xor.b32 %m${word}, %m${word}, %marker;`),
      "or.b32 %difference, %m0, %m1;",
      "or.b32 %difference, %difference, %m2;",
      "or.b32 %difference, %difference, %m3;",
      "setp.eq.u32 %marked, %difference, 0;",
      "selp.u32 %one, 1, 0, %marked;",
      "add.u32 %hits, %hits, %one;",
    ]),
    "or.b32 %difference, %used, %hits;",
    "setp.eq.u32 %silent, %difference, 0;",
    "@%silent bra DONE;",
    load("found", "found", "u64"),
    "cvta.to.global.u64 %found, %found;",
    "cvt.u64.u32 %add, %used;",
    "red.global.add.u64 [%found], %add;",
    "cvt.u64.u32 %add, %hits;",
    "red.global.add.u64 [%found+8], %add;",
  ]);

/**
 * Returns the text of three GPU kernels in PTX, NVIDIA's assembly language, which the driver compiles for the host's GPU. PTX 6.3 and the target
 * `sm_70` suit each NVIDIA driver since 2018 and each GPU since Volta.
 */
export const kernelsPtx = (): string =>
  [".version 6.3", ".target sm_70", ".address_size 64", "", fill(), check(), scan()].join("\n");
