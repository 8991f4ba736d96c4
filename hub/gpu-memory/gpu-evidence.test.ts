import { randomBytes, randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { MOST_GPU_BYTES } from "../../shared/gpu-memory.ts";
import { TaskId } from "../../shared/ids.ts";
import { WireReply } from "../../shared/protocol/frames.ts";
import { TASKS, type TaskResult } from "../../shared/tasks/index.ts";
import { checkAnswers } from "./expected-answers.ts";
import { answersToCheck, type Challenged, challengeOf, evidenceOf, type Filled, gpusOfScrub } from "./gpu-evidence.ts";
import { gpuVerdict } from "./verdict.ts";

const uuid = (number: number): string => `GPU-00112233-4455-6677-8899-${String(number).padStart(12, "0")}`;
const GIB = 2 ** 30;
const MOST = Number.MAX_SAFE_INTEGER;

const commitment = (number: number, change: object = {}) => ({
  uuid: uuid(number),
  pci_address: "0000:3b:00.0",
  cuda_version: 13_000,
  hip_version: null,
  allocated_bytes: 139 * GIB,
  total_bytes: 140 * GIB,
  reserved_bytes: GIB,
  visible_bytes: 140 * GIB,
  kernels_error: null,
  prefill_nonzero_units: 0,
  prefill_marker_units: null,
  mismatched_blocks: 0,
  first_mismatch: null,
  open_ms: 1,
  allocate_ms: 1,
  scan_ms: 1,
  fill_ms: 1,
  check_ms: 1,
  ...change,
});
const AMD_UUID = "GPU-00112233445566aa";
const release = { zeroed_bytes: 139 * GIB, nonzero_units: 0, answer_ms: 1, zero_ms: 1, scan_ms: 1 };
const filled = (commitments: TaskResult<"node.gpu_fill">["commitments"]): Filled => ({
  taskId: TaskId.parse("5f0c1a52-0000-4000-8000-000000000001"),
  input: {
    plan: false,
    seed: randomBytes(32).toString("hex"),
    marker: null,
    gpus: [
      { vendor: "amd", uuid: AMD_UUID, pci_address: "0000:c1:00.0" },
      { vendor: "nvidia", uuid: uuid(1), pci_address: "0000:3b:00.0" },
      { vendor: "nvidia", uuid: uuid(2), pci_address: "0000:3c:00.0" },
    ],
    deadline_seconds: 600,
    hold_seconds: 600,
  },
  result: { steps: [], commitments, faults: [], driver: null, library: { package: null, is_unchanged: null } },
});
const nonce = "0a".repeat(16);

const AT = "0000:3b:00.0";

describe("gpusOfScrub", () => {
  const verify = (target: string, evidence: Record<string, string | number | null>, outcome: "ok" | "failed" = "ok") =>
    ({ step: "gpu_verify", target, outcome, message: "", evidence }) as const;

  it("takes each GPU that the reset named, whether its reset succeeded or not", () => {
    const scrub = {
      needs: "none",
      boot_id: "b1",
      steps: [
        { step: "gpu_reset", target: "0000:3b:00.0", outcome: "ok", message: "", evidence: {} },
        verify("0000:3b:00.0", { uuid: uuid(1), memory_total_mib: 143_771 }),
        verify("0000:5e:00.0", { uuid: uuid(2), memory_total_mib: null }, "failed"),
        verify("0000:c1:00.0", { uuid: AMD_UUID, memory_total_mib: 196_592 }),
        verify("0000:86:00.0", { uuid: null }),
        verify("0000:87:00.0", { uuid: "GPU-0000000000000000" }),
        verify("host", { on_bus: 7 }, "failed"),
      ],
    } as const;
    const { order, expected, unnamed } = gpusOfScrub(TASKS["node.gpu_scrub"].result.parse(scrub));
    expect(order).toEqual([
      { vendor: "nvidia", uuid: uuid(1), pci_address: "0000:3b:00.0" },
      { vendor: "nvidia", uuid: uuid(2), pci_address: "0000:5e:00.0" },
      { vendor: "amd", uuid: AMD_UUID, pci_address: "0000:c1:00.0" },
    ]);
    expect(expected).toEqual([
      { uuid: uuid(1), address: "0000:3b:00.0", bytes: 143_771 * 2 ** 20, isReset: true },
      { uuid: uuid(2), address: "0000:5e:00.0", bytes: null, isReset: false },
      { uuid: AMD_UUID, address: "0000:c1:00.0", bytes: 196_592 * 2 ** 20, isReset: true },
    ]);
    expect(unnamed).toEqual(["0000:86:00.0", "0000:87:00.0", "host"]);
  });
});

describe("challengeOf", () => {
  it("asks each GPU that committed without a mismatch, and nobody if none did", () => {
    const both = filled([commitment(1), commitment(2, { mismatched_blocks: 3 })]);
    const challenge = challengeOf(both, nonce, randomInt, 60);
    expect(challenge?.gpus.map((gpu) => [gpu.uuid, gpu.blocks.length])).toEqual([[uuid(1), 64]]);
    expect(TASKS["node.gpu_challenge"].input.parse(challenge)).toEqual(challenge);
    expect(challengeOf(filled([]), nonce, randomInt, 60)).toBeNull();
    expect(challengeOf(filled([commitment(1, { allocated_bytes: 0 })]), nonce, randomInt, 60)).toBeNull();
  });
});

describe("answersToCheck and evidenceOf", () => {
  const fill = filled([commitment(1), commitment(2)]);
  const input = challengeOf(fill, nonce, randomInt, 60) ?? expect.fail("no challenge");
  const answered = (gpus: Challenged["result"]["gpus"]): Challenged => ({ input, result: { steps: [], gpus } });

  it("number the GPUs by the hub's own order", () => {
    const check = answersToCheck(fill, answered([{ uuid: uuid(2), answers: ["x"], release: null, fault: null }]));
    expect(check.gpus.map(({ gpu, uuid, answers }) => [gpu, uuid, answers])).toEqual([
      [1, uuid(1), []],
      [2, uuid(2), ["x"]],
    ]);
  });

  it("take a GPU without an answer as not challenged, and one with a wrong answer as contradicted", () => {
    const wrong = "A".repeat(43);
    const challenged = answered([
      { uuid: uuid(1), answers: [], release, fault: "not_answered" },
      { uuid: uuid(2), answers: input.gpus[1]?.blocks.map(() => wrong) ?? [], release, fault: null },
    ]);
    const expected = [1, 2, 3].map((number) => ({ uuid: uuid(number), address: AT, bytes: 140 * GIB, isReset: true }));
    const checked = checkAnswers(answersToCheck(fill, challenged));
    const levels = evidenceOf(expected, fill, challenged, checked, {}).map((one) => gpuVerdict(one).level);
    expect(levels).toEqual(["overwritten", "reset_only", "reset_only"]);
    expect(evidenceOf(expected, null, null, [], {}).map((one) => gpuVerdict(one).level)).toEqual([
      "reset_only",
      "reset_only",
      "reset_only",
    ]);
  });
});

it.each([
  [true, "as_packaged"],
  [false, "changed"],
  [null, "unchecked"],
] as const)("reads the agent's comparison of the driver's library: %s is %s", (is_unchanged, library) => {
  const fill = filled([commitment(1)]);
  const result = { ...fill.result, library: { package: "libnvidia-compute-580", is_unchanged } };
  const expected = [{ uuid: uuid(1), address: AT, bytes: 141 * GIB, isReset: true }];
  const sizes = { [AT]: { exact: 142 * GIB } };
  expect(evidenceOf(expected, { ...fill, result }, null, [], sizes)).toMatchObject([
    { library, expectedBytes: 142 * GIB, reportedBytes: 141 * GIB },
  ]);
});

describe("the largest results", () => {
  const numbers = Array.from({ length: 16 }, (_, number) => number);
  const step = { message: "m".repeat(512), outcome: "failed" } as const;
  const figures = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, MOST]));

  it("of a fill fit into a frame", () => {
    const result = {
      steps: numbers.map((number) => ({
        ...step,
        step: "gpu_fill",
        target: uuid(number),
        evidence: figures(Array.from({ length: 12 }, (_, index) => `figure_of_a_name_${index}`)),
      })),
      commitments: numbers.map((number) =>
        commitment(number, { first_mismatch: 139 * GIB, prefill_marker_units: 1, kernels_error: "k".repeat(256) }),
      ),
      clears: numbers.map(() => ({
        uuid: AMD_UUID,
        pci_address: "0000:c1:00.0",
        cleared_bytes: MOST_GPU_BYTES,
        total_bytes: MOST_GPU_BYTES,
        bar_bytes: MOST_GPU_BYTES,
        sampled_bytes: MOST_GPU_BYTES,
        nonzero_units: MOST_GPU_BYTES,
        allocate_ms: 86_400_000,
        sample_ms: 86_400_000,
      })),
      faults: numbers.map((number) => ({ target: uuid(number), fault: "memory_mismatch" })),
      driver: { version: "v".repeat(256), registry: "r".repeat(256), registry_per_device: "d".repeat(256) },
      library: { package: "p".repeat(128), is_unchanged: false },
    };
    expect(TASKS["node.gpu_fill"].result.safeParse(result).success).toBe(true);
    expect(WireReply.safeParse({ ok: true, result }).success).toBe(true);
  });

  it("of a challenge fit into a frame", () => {
    const result = {
      steps: numbers.map((number) => ({
        ...step,
        step: "gpu_challenge",
        target: uuid(number),
        evidence: { answers: 64, fault: "deadline_passed", ...release },
      })),
      gpus: numbers.map((number) => ({
        uuid: uuid(number),
        answers: Array.from({ length: 64 }, () => "A".repeat(43)),
        release,
        fault: "deadline_passed",
      })),
    };
    expect(TASKS["node.gpu_challenge"].result.safeParse(result).success).toBe(true);
    expect(WireReply.safeParse({ ok: true, result }).success).toBe(true);
  });
});
