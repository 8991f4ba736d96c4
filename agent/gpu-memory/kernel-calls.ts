/** The three GPU kernels have the same names and parameters for GPUs of all vendors. The GPU kernels' text is PTX for NVIDIA, and HIP's C for AMD. */
export const KERNEL_NAMES = { fill: "muster_fill", check: "muster_check", scan: "muster_scan" } as const;
export type KernelKind = keyof typeof KERNEL_NAMES;
export const THREADS_PER_GROUP = 256;

/** The columns and diagonals of ChaCha20's state, a square of 16 words (RFC 8439, 2.3). */
export const QUARTERS = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14],
] as const;
export const DOUBLE_ROUNDS = 10;
/** The text "expand 32-byte k", with which each state of ChaCha20 begins. */
export const CONSTANTS = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574] as const;

const STREAM_PARAMETERS = [
  "u64 at",
  "u32 count",
  "u32 counter",
  ...[0, 1, 2, 3, 4, 5, 6, 7].map((word) => `u32 key${word}`),
  ...[0, 1, 2].map((word) => `u32 nonce${word}`),
];
/** The parameters of the GPU kernels, in the order in which a GPU's driver takes them. */
export const KERNEL_PARAMETERS = {
  fill: STREAM_PARAMETERS,
  check: [...STREAM_PARAMETERS, "u64 first", "u64 found"],
  scan: ["u64 at", "u32 count", "u32 marker", "u64 found"],
} as const;

export const words = (count: number): number[] => Array.from({ length: count }, (_, word) => word);
