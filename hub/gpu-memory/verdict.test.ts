import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clearSampleOf, type GpuClear, type GpuCommitment, type GpuRelease } from "../../shared/gpu-memory.ts";
import { GPU_LEVELS } from "../../shared/sanitization-record.ts";
import { gpuClaim } from "./claim.ts";
import { type GpuEvidence, gpuVerdict, LEAST_QUESTIONS, percent, unmetRequirement } from "./verdict.ts";

const UUID = "GPU-00112233-4455-6677-8899-aabbccddeeff";
const OTHER = "GPU-00112233-4455-6677-8899-aabbccddee00";
const TOTAL = 1_000_000;
const COMMITMENT: GpuCommitment = {
  uuid: UUID,
  pci_address: "0000:3b:00.0",
  cuda_version: 13_000,
  hip_version: null,
  allocated_bytes: 990_000,
  total_bytes: TOTAL,
  reserved_bytes: 5_000,
  visible_bytes: 995_000,
  kernels_error: null,
  prefill_nonzero_units: 12,
  prefill_marker_units: null,
  mismatched_blocks: 0,
  first_mismatch: null,
  open_ms: 1,
  allocate_ms: 1,
  scan_ms: 1,
  fill_ms: 1,
  check_ms: 1,
};
const RELEASE: GpuRelease = { zeroed_bytes: 990_000, nonzero_units: 0, answer_ms: 1, zero_ms: 1, scan_ms: 1 };
const GOOD: GpuEvidence = {
  uuid: UUID,
  expectedBytes: TOTAL,
  reportedBytes: TOTAL,
  isReset: true,
  commitment: COMMITMENT,
  answers: { uuid: UUID, asked: 64, correct: 64 },
  release: RELEASE,
  clear: null,
  library: "as_packaged",
};

const AMD = "GPU-0011223344556677";
const GIB = 2 ** 30;
const CLEAR: GpuClear = {
  uuid: AMD,
  pci_address: "0000:c1:00.0",
  cleared_bytes: 190 * GIB,
  total_bytes: 192 * GIB,
  bar_bytes: 192 * GIB,
  sampled_bytes: 64 * 2 ** 20,
  nonzero_units: 0,
  allocate_ms: 1,
  sample_ms: 1,
};
const CLEARED: GpuEvidence = {
  uuid: AMD,
  expectedBytes: 192 * GIB,
  reportedBytes: 192 * GIB,
  isReset: true,
  commitment: null,
  answers: null,
  release: null,
  clear: CLEAR,
  library: "unchecked",
};

describe("the verdict on memory that the kernel's driver cleared", () => {
  it("is overwritten at most, with the share of the cleared bytes", () => {
    expect(gpuVerdict(CLEARED)).toEqual({
      uuid: AMD,
      level: "overwritten",
      share: 190 / 192,
      ofBytes: 192 * GIB,
      reasons: [expect.stringContaining("Only an overwrite through HIP can reach challenge_verified")],
    });
    const asked = { uuid: AMD, asked: 64, correct: 64 };
    expect(gpuVerdict({ ...CLEARED, answers: asked, release: RELEASE }).level).toBe("overwritten");
    expect(gpuVerdict({ ...CLEARED, isReset: false }).level).toBe("overwritten");
    expect(gpuVerdict({ ...CLEARED, expectedBytes: 200 * GIB }).share).toBe(0.95);
  });

  it("needs the whole of a memory that is smaller than the usual sample", () => {
    const small = { ...CLEAR, cleared_bytes: 8 * 2 ** 20, total_bytes: 8 * 2 ** 20 };
    expect(clearSampleOf(small.cleared_bytes)).toBe(8 * 2 ** 20);
    const verdict = (sampled: number) =>
      gpuVerdict({ ...CLEARED, expectedBytes: null, clear: { ...small, sampled_bytes: sampled } }).level;
    expect([verdict(8 * 2 ** 20), verdict(8 * 2 ** 20 - 1), verdict(8 * 2 ** 20 + 1)]).toEqual([
      "overwritten",
      "reset_only",
      "reset_only",
    ]);
  });

  it.each<[string, Partial<GpuEvidence>, RegExp]>([
    ["another GPU", { clear: { ...CLEAR, uuid: "GPU-00112233445566ff" } }, /named another GPU/],
    ["no memory", { clear: { ...CLEAR, cleared_bytes: 0, sampled_bytes: 0 } }, /no memory/],
    ["more memory than there is", { clear: { ...CLEAR, cleared_bytes: 193 * GIB } }, /more cleared/],
    [
      "no sample, because the BAR is small",
      { clear: { ...CLEAR, sampled_bytes: 0, bar_bytes: 2 ** 28 } },
      /268435456 of/,
    ],
    [
      "no sample, because nobody knows the BAR",
      { clear: { ...CLEAR, sampled_bytes: 0, bar_bytes: null } },
      /an unknown/,
    ],
    [
      "a sample that is too small",
      { clear: { ...CLEAR, sampled_bytes: 64 * 2 ** 20 - 1 } },
      /Only 67108863 of 67108864/,
    ],
    ["one unit that is not zero", { clear: { ...CLEAR, nonzero_units: 1 } }, /1 units that were not zero/],
    ["a commitment besides", { commitment: { ...COMMITMENT, uuid: AMD } }, /both an overwrite of its own and a clear/],
  ])("falls to reset_only with %s, and to nothing without a reset", (_what, change, reason) => {
    const fallen = gpuVerdict({ ...CLEARED, ...change });
    expect(fallen).toMatchObject({ level: "reset_only", share: 0 });
    expect(fallen.reasons.join(" ")).toMatch(reason);
    expect(gpuVerdict({ ...CLEARED, ...change, isReset: false }).level).toBeNull();
  });

  it("is never challenge_verified, and never overwritten without a sample that is zero (generated cases)", () => {
    const clear = fc.record({
      ...Object.fromEntries(
        (["cleared_bytes", "total_bytes", "sampled_bytes"] as const).map((name) => [
          name,
          fc.constantFrom(0, 2 ** 20, 64 * 2 ** 20, GIB, 192 * GIB),
        ]),
      ),
      nonzero_units: fc.constantFrom(0, 0, 1),
      bar_bytes: fc.constantFrom(null, 2 ** 28, 192 * GIB),
    });
    fc.assert(
      fc.property(clear, fc.boolean(), (drawn, isReset) => {
        const whole = { ...CLEAR, ...drawn };
        const { level, share } = gpuVerdict({ ...CLEARED, isReset, clear: whole });
        expect(level).not.toBe("challenge_verified");
        if (level !== "overwritten") return;
        expect([whole.nonzero_units, whole.cleared_bytes > 0]).toEqual([0, true]);
        expect(whole.sampled_bytes).toBeGreaterThanOrEqual(clearSampleOf(whole.cleared_bytes));
        expect(share > 0 && share <= 1).toBe(true);
      }),
    );
  });
});

describe("gpuVerdict", () => {
  it("reaches each level with exactly its evidence", () => {
    expect(gpuVerdict(GOOD)).toEqual({
      uuid: UUID,
      level: "challenge_verified",
      share: 0.99,
      ofBytes: TOTAL,
      reasons: [],
    });
    expect(gpuVerdict({ ...GOOD, answers: null })).toMatchObject({ level: "overwritten", share: 0.99 });
    expect(gpuVerdict({ ...GOOD, commitment: null })).toMatchObject({ level: "reset_only", share: 0 });
    expect(gpuVerdict({ ...GOOD, commitment: null, isReset: false })).toMatchObject({ level: null, share: 0 });
  });

  it.each<[string, Partial<GpuEvidence>, RegExp]>([
    ["another GPU", { commitment: { ...COMMITMENT, uuid: OTHER } }, /named another GPU/],
    ["no memory", { commitment: { ...COMMITMENT, allocated_bytes: 0 } }, /no memory/],
    ["more memory than there is", { commitment: { ...COMMITMENT, allocated_bytes: TOTAL + 1 } }, /more overwritten/],
    ["a mismatch", { commitment: { ...COMMITMENT, mismatched_blocks: 1 } }, /differed .* in 1 blocks/],
    ["one wrong answer", { answers: { uuid: UUID, asked: 64, correct: 63 } }, /1 of 64 questions wrongly/],
    ["no release", { release: null }, /did not report that its memory was zeroed/],
    ["a release in part", { release: { ...RELEASE, zeroed_bytes: 989_999 } }, /only in part/],
    ["memory that is not zero", { release: { ...RELEASE, nonzero_units: 1 } }, /1 units that were not zero/],
    ["a changed library of the driver", { library: "changed" }, /library .* differs from its package/],
  ])("falls to reset_only with %s, and to nothing without a reset", (_what, change, reason) => {
    const fallen = gpuVerdict({ ...GOOD, ...change });
    expect(fallen).toMatchObject({ level: "reset_only", share: 0 });
    expect(fallen.reasons.join(" ")).toMatch(reason);
    expect(gpuVerdict({ ...GOOD, ...change, isReset: false }).level).toBeNull();
  });

  it("does not believe a host that states less memory than the hub knows, whoever on the host states it", () => {
    const small = {
      reportedBytes: 1_000,
      commitment: { ...COMMITMENT, allocated_bytes: 1_000, total_bytes: 1_000, visible_bytes: 1_000 },
      release: { ...RELEASE, zeroed_bytes: 1_000 },
    };
    const verdict = gpuVerdict({ ...GOOD, ...small });
    expect(verdict).toMatchObject({ level: "reset_only", share: 0, ofBytes: TOTAL });
    expect(verdict.reasons).toEqual([
      `GPU ${UUID} states 1000 bytes of memory, and had ${TOTAL} bytes before the tenant's use.`,
    ]);
    expect(gpuVerdict({ ...GOOD, ...small, reportedBytes: 0.9 * TOTAL }).share).toBe(0.001);
    const cleared = { ...CLEAR, total_bytes: 64 * 2 ** 20, cleared_bytes: 64 * 2 ** 20 };
    expect(gpuVerdict({ ...CLEARED, reportedBytes: null, clear: cleared }).level).toBe("reset_only");
  });

  it("claims overwritten at most if only the host states the size, and the claim says so", () => {
    const unknown = { ...GOOD, expectedBytes: null };
    const verdict = gpuVerdict(unknown);
    expect(verdict).toMatchObject({ level: "overwritten", share: 0.99 });
    expect(verdict.reasons.join()).toContain("the size is the word of the host alone");
    const host = { at: new Date(0), agentVersion: "1", bootId: "b", image: null, secureBoot: "on" } as const;
    const gaps = (evidence: GpuEvidence) => gpuClaim(host, evidence, gpuVerdict(evidence), "seed").not_covered.join();
    expect(gaps(unknown)).toContain("memory of the GPU that the host did not state");
    expect(gaps({ ...CLEARED, expectedBytes: null })).toContain("memory of the GPU that the host did not state");
    expect(gaps(GOOD) + gaps(CLEARED)).not.toContain("did not state");
  });

  it("needs enough questions for challenge_verified", () => {
    const few = { uuid: UUID, asked: LEAST_QUESTIONS - 1, correct: LEAST_QUESTIONS - 1 };
    expect(gpuVerdict({ ...GOOD, answers: few })).toMatchObject({ level: "overwritten" });
  });

  it("takes the share of the largest figure of the GPU's memory, whoever gives it", () => {
    const share = (expected: number | null, total: number | null, visible: number) =>
      gpuVerdict({
        ...GOOD,
        expectedBytes: expected,
        reportedBytes: null,
        commitment: { ...COMMITMENT, total_bytes: total, visible_bytes: visible },
      }).share;
    expect(share(1_100_000, TOTAL, 995_000)).toBe(0.9);
    expect(share(null, 1_100_000, 995_000)).toBe(0.9);
    expect(share(null, null, 990_000)).toBe(1);
  });

  it("never rises when evidence is taken away or contradicted (generated cases)", () => {
    const rank = (evidence: GpuEvidence): number => {
      const { level } = gpuVerdict(evidence);
      return level === null ? -1 : GPU_LEVELS.indexOf(level);
    };
    const evidence = fc.record({
      uuid: fc.constant(UUID),
      expectedBytes: fc.constantFrom(null, TOTAL, 2 * TOTAL),
      reportedBytes: fc.constantFrom(null, 1, TOTAL),
      isReset: fc.boolean(),
      library: fc.constantFrom("as_packaged", "unchecked", "changed"),
      commitment: fc.option(
        fc.record({
          uuid: fc.constantFrom(UUID, UUID, OTHER),
          allocated_bytes: fc.constantFrom(0, 990_000, 990_000, 3 * TOTAL),
          mismatched_blocks: fc.constantFrom(0, 0, 1),
        }),
      ),
      answers: fc.option(
        fc.record({ uuid: fc.constant(UUID), asked: fc.constantFrom(0, 1, 64), missing: fc.constantFrom(0, 0, 1) }),
      ),
      release: fc.option(
        fc.record({ zeroed_bytes: fc.constantFrom(990_000, 990_000, 0), nonzero_units: fc.constantFrom(0, 0, 1) }),
      ),
    });
    fc.assert(
      fc.property(evidence, (drawn) => {
        const whole: GpuEvidence = {
          ...drawn,
          commitment: drawn.commitment === null ? null : { ...COMMITMENT, ...drawn.commitment },
          answers:
            drawn.answers === null
              ? null
              : {
                  uuid: UUID,
                  asked: drawn.answers.asked,
                  correct: Math.max(0, drawn.answers.asked - drawn.answers.missing),
                },
          release: drawn.release === null ? null : { ...RELEASE, ...drawn.release },
          clear: null,
        };
        const level = rank(whole);
        expect(rank({ ...whole, isReset: false })).toBeLessThanOrEqual(level);
        expect(rank({ ...whole, commitment: null })).toBeLessThanOrEqual(level);
        expect(rank({ ...whole, expectedBytes: null })).toBeLessThanOrEqual(GPU_LEVELS.indexOf("overwritten"));
        expect(rank({ ...whole, expectedBytes: 2 * TOTAL })).toBeLessThanOrEqual(Math.min(level, 0));
        expect(rank({ ...whole, library: "changed" })).toBeLessThanOrEqual(Math.min(level, 0));
        expect(rank({ ...whole, release: null })).toBeLessThanOrEqual(level);
        expect(rank({ ...whole, answers: { uuid: UUID, asked: 64, correct: 0 } })).toBeLessThanOrEqual(level);
        const verdict = gpuVerdict(whole);
        expect(verdict.share >= 0 && verdict.share <= 1).toBe(true);
        expect(verdict.level === "challenge_verified" || verdict.reasons.length > 0).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("unmetRequirement", () => {
  const levels = [null, ...GPU_LEVELS];
  const required = GPU_LEVELS.flatMap((level) => [0, 0.98, 1].map((share) => ({ level, share })));

  it("is empty exactly if each GPU has the level and the share", () => {
    for (const level of levels)
      for (const share of [0, 0.9799, 0.98, 1])
        for (const requirement of required) {
          const verdict = { uuid: UUID, level, share, ofBytes: TOTAL, reasons: ["because"] };
          const isHigh = levels.indexOf(level) >= levels.indexOf(requirement.level);
          const isMet = isHigh && (requirement.level === "reset_only" || share >= requirement.share);
          expect(unmetRequirement([verdict], [UUID], requirement).length === 0).toBe(isMet);
        }
  });

  it("names a GPU of which nothing is known", () => {
    const unmet = unmetRequirement([gpuVerdict(GOOD)], [UUID, OTHER], { level: "overwritten", share: 0.98 });
    expect(unmet).toEqual([`Nothing is known of GPU ${OTHER}.`]);
  });
});

describe("percent", () => {
  it("never rounds up", () => {
    expect([0, 0.98999, 0.99999, 1].map(percent)).toEqual(["0.00 %", "98.99 %", "99.99 %", "100.00 %"]);
  });
});

describe("gpuClaim", () => {
  const host = {
    at: new Date("2026-11-23T07:00:00Z"),
    agentVersion: "0.2.0",
    bootId: "b1",
    image: "noble",
    secureBoot: "on",
  } as const;
  const claimOf = (evidence: GpuEvidence) => gpuClaim(host, evidence, gpuVerdict(evidence), "ab12");

  it("says at each level who reported what, and what is not covered", () => {
    const verified = claimOf(GOOD);
    expect(verified.text).toBe(
      `At 2026-11-23T07:00:00.000Z, Muster's agent 0.2.0 (boot b1, image noble, Secure Boot on) reported that it overwrote 990000 of 1000000 bytes on GPU ${UUID} with data derived from seed ab12, which was issued for this task. It found 0 mismatches on the device. It answered 64 questions about random blocks correctly, which the hub chose after the overwrite. It zeroed these bytes and found them zero. It does not show that no copy exists elsewhere, and it relies on the integrity of the host software named above.`,
    );
    expect(verified.not_covered[0]).toMatch(/^10000 bytes/);
    const copied = { ...GOOD, commitment: { ...COMMITMENT, kernels_error: "cuModuleLoadDataEx returned 221." } };
    expect(claimOf(copied).text).toMatch(/0 mismatches in copies that the host read back[.]/);
    expect(claimOf({ ...GOOD, answers: null }).text).not.toMatch(/questions/);
    expect(claimOf({ ...GOOD, commitment: null }).text).toMatch(/was reset[.] Muster did not overwrite/);
    expect(claimOf({ ...GOOD, commitment: null }).not_covered[0]).toBe("the whole memory of the GPU");
    const changed = claimOf({ ...GOOD, library: "changed" });
    expect(changed.text).toMatch(
      /was reset[.] The library .* differs from its package, .* does not believe the overwrite/,
    );
    expect(changed.not_covered[0]).toBe("the whole memory of the GPU");
    const named = (evidence: GpuEvidence) => claimOf(evidence).not_covered.filter((what) => /library/.test(what));
    expect([named(GOOD), named(CLEARED)]).toEqual([[], []]);
    expect(named({ ...GOOD, library: "unchecked" })).toHaveLength(1);
    expect(claimOf({ ...GOOD, commitment: null, isReset: false }).text).toMatch(/claims nothing/);
  });

  it("says of cleared memory who cleared it, how little was read, and what is not covered", () => {
    const { text, not_covered } = claimOf(CLEARED);
    expect(text).toBe(
      `At 2026-11-23T07:00:00.000Z, Muster's agent 0.2.0 (boot b1, image noble, Secure Boot on) reported that the amdgpu driver of the kernel gave it 204010946560 of 206158430208 bytes on GPU ${AMD} in buffers which that driver clears, and that a sample of 67108864 bytes at random places in them was zero: overwritten (kernel clear), sampled. It does not show that no copy exists elsewhere, and it relies on the integrity of the host software named above.`,
    );
    expect(not_covered.slice(0, 3)).toEqual([
      expect.stringMatching(/^2147483648 bytes .* does not give to a process$/),
      expect.stringMatching(/^203943837696 bytes .* nobody read/),
      expect.stringContaining("did not clear again"),
    ]);
    expect(claimOf({ ...CLEARED, clear: { ...CLEAR, sampled_bytes: 0 } }).text).toMatch(/did not overwrite/);
  });

  it("never promises a proof, a certificate or a secure erasure", () => {
    for (const evidence of [
      GOOD,
      CLEARED,
      { ...GOOD, answers: null },
      { ...GOOD, commitment: null },
      { ...GOOD, commitment: null, isReset: false },
    ])
      expect(JSON.stringify(claimOf(evidence))).not.toMatch(/prov|certif|secure(ly)? eras/i);
  });
});
