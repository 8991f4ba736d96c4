import { describe, expect, it } from "vitest";
import { GPU_LEVELS } from "../../shared/sanitization-record.ts";
import { FORBIDDEN } from "../../shared/sanitization-sentences.ts";
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
