import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { TaskId } from "../../shared/ids.ts";
import { GPU_LEVELS } from "../../shared/sanitization-record.ts";
import { FORBIDDEN, mediaOf } from "../../shared/sanitization-sentences.ts";
import { TASKS } from "../../shared/tasks/index.ts";
import { type HostMemoryFacts, judgeHostMemory } from "./host-memory.ts";

const UUID = "GPU-00112233-4455-6677-8899-aabbccddee00";
const verify = (outcome: "ok" | "failed" = "ok") =>
  ({
    step: "gpu_verify",
    target: "0000:3b:00.0",
    outcome,
    message: "",
    evidence: { uuid: UUID, memory_total_mib: 64 },
  }) as const;
const facts = (more: Partial<HostMemoryFacts> = {}): HostMemoryFacts => ({
  scrub: { steps: [verify()], needs: "none", boot_id: "b" },
  filled: null,
  challenged: null,
  checked: [],
  required: { level: "reset_only", share: 0.95 },
  sizes: { "0000:3b:00.0": { window: 64 * 2 ** 20 }, "0000:c1:00.0": { window: 64 * 2 ** 20 } },
  host: { at: new Date(0), agentVersion: "1", bootId: "b", image: null, secureBoot: "unknown" },
  ...more,
});

describe("the memory of a host that was only reset", () => {
  it("meets the level reset_only, and the record requires no share", () => {
    const { gpus, statements, unmet } = judgeHostMemory(facts());
    expect(unmet).toEqual([]);
    expect(gpus).toEqual([
      {
        uuid: UUID,
        level: "reset_only",
        share: 0,
        bytes_overwritten: null,
        bytes_total: 64 * 2 ** 20,
        required_level: "reset_only",
        required_share: 0,
      },
    ]);
    expect(statements.map(({ claim }) => claim)).toEqual([expect.stringContaining("Muster did not overwrite")]);
    expect(statements.every(({ claim }) => !FORBIDDEN.test(claim))).toBe(true);
  });

  it.each(GPU_LEVELS.slice(1))("does not meet the level %s", (level) => {
    const { gpus, unmet } = judgeHostMemory(facts({ required: { level, share: 0.95 } }));
    expect(gpus).toMatchObject([{ level: "reset_only", required_level: level, required_share: 0.95 }]);
    expect(unmet.join()).toContain(`reached reset_only, and ${level} is required`);
  });

  it("meets no level if the reset failed, and says nothing of a host that named no GPU", () => {
    const failed = facts({ scrub: { steps: [verify("failed")], needs: "none", boot_id: "b" } });
    expect(judgeHostMemory(failed)).toMatchObject({
      gpus: [{ level: null }],
      unmet: [expect.any(String), expect.any(String), expect.any(String)],
    });
    expect(judgeHostMemory(facts({ scrub: { steps: [], needs: "none", boot_id: "b" } }))).toEqual({
      gpus: [],
      statements: [],
      unmet: [],
    });
  });
});

describe("the memory of a host whose kernel driver cleared it", () => {
  const AMD = "GPU-0011223344556677";
  const BYTES = 64 * 2 ** 20;
  const scrub: HostMemoryFacts["scrub"] = {
    steps: [{ ...verify(), target: "0000:c1:00.0", evidence: { uuid: AMD, memory_total_mib: 64 } }],
    needs: "none",
    boot_id: "b",
  };
  const filled = (more: { readonly sampled_bytes?: number } = {}): NonNullable<HostMemoryFacts["filled"]> => {
    const clear = {
      uuid: AMD,
      pci_address: "0000:c1:00.0",
      cleared_bytes: BYTES,
      total_bytes: BYTES,
      bar_bytes: BYTES,
    };
    const input = {
      plan: false,
      seed: "ab".repeat(32),
      marker: null,
      gpus: [{ vendor: "amd", uuid: AMD, pci_address: "0000:c1:00.0" }],
      deadline_seconds: 60,
      hold_seconds: 60,
    };
    const result = {
      steps: [],
      commitments: [],
      clears: [{ ...clear, sampled_bytes: BYTES, nonzero_units: 0, allocate_ms: 1, sample_ms: 1, ...more }],
      faults: [],
      driver: null,
      library: { package: null, is_unchanged: null },
    };
    const task = TASKS["node.gpu_fill"];
    return { taskId: TaskId.parse(randomUUID()), input: task.input.parse(input), result: task.result.parse(result) };
  };
  const judged = (level: (typeof GPU_LEVELS)[number], more: { readonly sampled_bytes?: number } = {}) =>
    judgeHostMemory(facts({ scrub, filled: filled(more), required: { level, share: 0.95 } }));

  it("meets the level overwritten, and the record names the technique", () => {
    const { gpus, unmet, statements } = judged("overwritten");
    expect(unmet).toEqual([]);
    expect(gpus).toMatchObject([
      { level: "overwritten", share: 1, bytes_overwritten: BYTES, kernel_clear: { sampled_bytes: BYTES } },
    ]);
    expect(statements[0]?.claim).toContain("overwritten (kernel clear), sampled");
    expect(statements.every(({ claim }) => !FORBIDDEN.test(claim))).toBe(true);
    const record = { tasks: [], gpus: [...gpus] };
    expect(mediaOf(record, [], [], "node")).toMatchObject([
      {
        method: "clear",
        technique: "overwritten (kernel clear), sampled",
        tool: "amdgpu driver of the kernel",
        verification: "sample of 67108864 bytes by the agent",
        verification_result: "zero",
      },
    ]);
  });

  it("never meets the level challenge_verified, and no level above reset_only without a sample", () => {
    expect(judged("challenge_verified").unmet.join()).toContain(
      "reached overwritten, and challenge_verified is required",
    );
    const { gpus, unmet } = judged("overwritten", { sampled_bytes: 0 });
    expect(unmet.join()).toContain("reached reset_only, and overwritten is required");
    expect(gpus[0]).not.toHaveProperty("kernel_clear");
  });
});
