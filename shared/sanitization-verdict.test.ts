import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WorkflowId } from "./ids.ts";
import { buildRecord } from "./sanitization-build.ts";
import { anyFacts, cleanFacts, item, release, step, task } from "./sanitization-facts.fixture.ts";
import { GPU_LEVELS, VERDICT_REASONS } from "./sanitization-record.ts";
import { judge, lastSteps } from "./sanitization-verdict.ts";

const recordOf = (more: Parameters<typeof cleanFacts>[0]) => buildRecord(cleanFacts(more)).record;
const codes = (more: Parameters<typeof cleanFacts>[0]) => recordOf(more).reasons.map(({ code }) => code);
/** The release of the test's host has no other evidence than MAAS's report about the whole machine. */
const unnamed = () => {
  const { blocks_compared: _, ...rest } = release();
  return rest;
};
const GPU = { type: "node.gpu_scrub", step: "overwrite" } as const;
const gpu = (...outcomes: readonly ("ok" | "failed" | "skipped" | "unsupported" | "planned")[]) =>
  task({ type: GPU.type, steps: outcomes.map((outcome, n) => step({ step: GPU.step, target: `gpu${n}`, outcome })) });

describe("the verdict", () => {
  it("is not clean if the hub does not believe a purge, and no claim names the purge", () => {
    const evidence = { media_kind: "disk", serial: "S-1", method: "purge", technique: "x", bytes_treated: 1 };
    const purge = task({ type: "node.storage_cleanup", steps: [step({ step: "disk", target: "S-1", evidence })] });
    const refused = { task_id: purge.task_id, target: "S-1", code: "other_seed", message: "another sample" };
    const believed = recordOf({ tasks: [task(), purge] });
    expect([believed.verdict, believed.media[0]?.method]).toEqual(["clean", "purge"]);
    const record = recordOf({ tasks: [task(), purge], refused_evidence: [refused] });
    expect(record).toMatchObject({
      verdict: "not_clean",
      reasons: [{ code: "evidence_refused", about: "disk S-1: other_seed, another sample" }],
      media: [{ method: "none", bytes_treated: null, verification_result: "other_seed: another sample" }],
    });
    expect(record.claims.join()).not.toContain("method class purge");
  });

  it("is clean without a reason only", () => {
    expect(recordOf({})).toMatchObject({ verdict: "clean", reasons: [] });
  });

  it.each([
    ["a required step failed", { required: [GPU], tasks: [gpu("ok", "failed")] }, ["step_failed", "required_not_ok"]],
    ["a required step is not possible", { required: [GPU], tasks: [gpu("ok", "unsupported")] }, ["required_not_ok"]],
    ["a required step was skipped", { required: [GPU], tasks: [gpu("skipped")] }, ["required_not_ok"]],
    [
      "a required step was only planned",
      { required: [GPU], tasks: [gpu("planned")] },
      ["required_not_ok", "only_planned"],
    ],
    ["no task did a required step", { required: [GPU] }, ["required_missing"]],
    [
      "all steps of a required task were skipped",
      { required: [{ ...GPU, step: null }], tasks: [gpu("skipped")] },
      ["required_not_ok"],
    ],
    ["any other step failed", { tasks: [task(), gpu("failed")] }, ["step_failed"]],
    [
      "the last task of a type failed",
      { tasks: [task(), task({ result_sha256: null, error: "interrupted", steps: [] })] },
      ["task_failed"],
    ],
    [
      "residue was found",
      { residue: { has_baseline: true, items: [item({ status: "found", names: ["x"] })] } },
      ["residue_found"],
    ],
  ] as const)("is not_clean if %s", (_, more, expected) => {
    const facts = more as Parameters<typeof cleanFacts>[0];
    expect(recordOf(facts).verdict).toBe("not_clean");
    expect(codes(facts)).toEqual(expected);
  });

  it.each([
    ["no step is required", { required: [] }, "nothing_required"],
    ["another step was only planned", { tasks: [task(), gpu("planned")] }, "only_planned"],
    ["nobody looked for residue on the tenant's system", { residue: null }, "residue_missing"],
    [
      "nobody looked for residue on the new system",
      { trust: "reimaged", release: release(), residue: null },
      "residue_missing",
    ],
    ["only MAAS's report about the machine shows the erase", { release: unnamed() }, "erase_not_compared"],
    [
      "nobody judged a GPU of the inventory",
      { known_media: [{ kind: "gpu_memory", model: "H100", serial: null }] },
      "gpu_not_judged",
    ],
    [
      "an item is unreadable",
      { residue: { has_baseline: true, items: [item({ status: "unreadable" })] } },
      "residue_unreadable",
    ],
    ["no item was looked at", { residue: { has_baseline: true, items: [] } }, "residue_unreadable"],
    ["the node has no baseline", { residue: { has_baseline: false, items: [item()] } }, "no_baseline"],
    ["the release asked for no erase", { release: release({ erase: "none", evidence: "none" }) }, "erase_not_asked"],
    ["nothing shows the erase", { release: release({ evidence: "none" }) }, "erase_without_evidence"],
    ["a person waived the erase", { release: release({ evidence: "none", waived_by: "ann" }) }, "erase_waived"],
    ["no agent signs", { unsigned_reason: "the agent is gone" }, "not_signed"],
    ["the node has no agent", { agent: null }, "not_signed"],
  ] as const)("is incomplete if %s", (_, more, code) => {
    const facts = more as Parameters<typeof cleanFacts>[0];
    expect(recordOf(facts).verdict).toBe("incomplete");
    expect(codes(facts)).toEqual([code]);
  });

  it("stays incomplete if only the system of a tenant with root told the content before the erase", () => {
    const facts = { trust: "reimaged", release: { ...unnamed(), blocks_doubted: 64 } } as const;
    expect(recordOf(facts)).toMatchObject({
      verdict: "incomplete",
      reasons: [{ code: "erase_not_compared", about: expect.stringContaining("64 blocks were compared only with") }],
    });
  });

  it.each([{ disks_reported: 1 }, { blocks_compared: 1 }, { blocks_doubted: 64, disks_blank: 1 }])(
    "is clean if a disk of the release has evidence, %j",
    (more) => {
      expect(recordOf({ trust: "reimaged", release: { ...unnamed(), ...more } })).toMatchObject({ verdict: "clean" });
    },
  );

  it("of a record of the first rules stays as it was", () => {
    const record = recordOf({ trust: "reimaged", release: unnamed(), residue: null });
    const { rules, ...first } = record;
    expect([rules, judge(record).verdict, judge(first).verdict]).toEqual([2, "incomplete", "clean"]);
  });

  it("names the person who decided about the disks, and not the one who decided about the erase", () => {
    const told = { evidence: "none" as const, waived_by: "ann", disk_findings: ["disk S-1"] };
    const waivers = (more: object) =>
      recordOf({ release: release({ ...told, ...more }) }).reasons.map(({ about }) => about);
    expect(waivers({})).toEqual(["disk S-1"]);
    expect(waivers({ disks_waived_by: "ben" })[1]).toMatch(/^ben continued/);
  });

  it("requires no step of the agent if the host got a new system", () => {
    expect(recordOf({ trust: "reimaged", release: release(), required: [] })).toMatchObject({ verdict: "clean" });
  });

  it("is incomplete if a requirement rests on a task that the agent cannot confirm, and clean if none does", () => {
    const [mine, other] = [task(), task({ type: "node.drain", steps: [] })];
    const tasks = [mine, other];
    expect(codes({ tasks, unconfirmed_tasks: [mine.task_id] })).toEqual(["task_unconfirmed"]);
    expect(recordOf({ tasks, unconfirmed_tasks: [other.task_id] }).verdict).toBe("clean");
  });

  it.each(["node.validate_clean", "node.sample_disks"])(
    "is incomplete if the agent cannot confirm the task %s, whose result is evidence",
    (type) => {
      const evidence = task({ type, steps: [] });
      const facts = { tasks: [task(), evidence], unconfirmed_tasks: [evidence.task_id] };
      expect(codes(facts)).toEqual(["task_unconfirmed"]);
    },
  );

  it.each([
    ["overwritten", 1, "challenge_verified", 0.9, ["gpu_below_required"]],
    ["challenge_verified", 0.5, "overwritten", 0.9, ["gpu_below_required"]],
    [null, 1, "reset_only", 0, ["gpu_below_required"]],
    ["challenge_verified", 0.97, "overwritten", 0.9, []],
    [null, 0, null, 0, []],
  ] as const)(
    "of a GPU with %s of %d, when %s of %d is required, has the reasons %j",
    (level, share, required_level, required_share, expected) => {
      const one = {
        uuid: "GPU-1",
        level,
        share,
        bytes_overwritten: null,
        bytes_total: null,
        required_level,
        required_share,
      };
      expect(codes({ gpus: [one] })).toEqual(expected);
    },
  );

  it.each([
    ["node_removed", "before its node was removed"],
    ["host_released", "before MAAS released its machine"],
  ] as const)("of a tenant's use that ended without a turnover says how far a cleaning came, %s", (because, how) => {
    const lost = { required: [], tasks: [], residue: null, unsigned_reason: "the host is gone" };
    const never = recordOf({ ...lost, without_turnover: { because, begun: null } });
    expect(never.verdict).toBe("not_clean");
    expect(never.reasons.map(({ code }) => code)).toEqual(["residue_missing", "never_cleaned", "not_signed"]);
    expect(never.reasons[1]?.about).toBe(`no operation cleaned the host ${how}`);
    const begun = { decommission_id: WorkflowId.parse(randomUUID()), mode: "soft_reset" };
    const half = recordOf({ without_turnover: { because, begun } });
    const about = `soft_reset ${begun.decommission_id} did not finish the cleaning of the host ${how}`;
    expect(half).toMatchObject({ verdict: "incomplete", reasons: [{ code: "cleaning_unfinished", about }] });
  });

  it("counts the repetition of a failed step, and a failed step that nobody repeated", () => {
    const again = gpu("ok");
    expect(recordOf({ required: [GPU], tasks: [gpu("failed"), again] }).verdict).toBe("clean");
    expect(recordOf({ required: [GPU], tasks: [gpu("ok", "failed"), again] }).verdict).toBe("not_clean");
    expect(recordOf({ required: [GPU], tasks: [again, gpu("failed")] }).verdict).toBe("not_clean");
  });

  it("is not changed by a step that is not required and not possible, which the record names as not covered", () => {
    const record = recordOf({ tasks: [task(), gpu("unsupported")] });
    expect(record.verdict).toBe("clean");
    expect(record.not_covered).toContain("The step overwrite of node.gpu_scrub on gpu0 was not possible on this host.");
  });

  it("is clean only if each requirement was met, nothing failed, and somebody looked and signed", () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const { record } = buildRecord(facts);
        const steps = lastSteps(record.tasks);
        if (record.verdict !== "clean") {
          expect(record.reasons.length).toBeGreaterThan(0);
          return;
        }
        expect([facts.unsigned_reason, facts.without_turnover]).toEqual([null, undefined]);
        expect(facts.required.length > 0 || facts.release !== undefined).toBe(true);
        expect(facts.release?.evidence).not.toBe("none");
        expect(steps.filter(({ outcome }) => outcome === "failed" || outcome === "planned")).toEqual([]);
        for (const { type, step: name } of facts.required) {
          const own = steps.filter((one) => one.type === type && (name === null || one.step === name));
          expect(own.some(({ outcome }) => outcome === "ok")).toBe(true);
          expect(own.filter(({ outcome }) => outcome !== "ok" && (name !== null || outcome !== "skipped"))).toEqual([]);
          expect(own.filter(({ taskId }) => facts.unconfirmed_tasks.some((id) => id === taskId))).toEqual([]);
        }
        for (const { level, share, required_level, required_share } of facts.gpus) {
          if (required_level === null) continue;
          expect(GPU_LEVELS.indexOf(level ?? "reset_only")).toBeGreaterThanOrEqual(GPU_LEVELS.indexOf(required_level));
          expect([level === null, share < required_share]).toEqual([false, false]);
        }
        expect(facts.residue).toMatchObject({ has_baseline: true });
        expect(facts.known_media.filter(({ kind }) => kind === "gpu_memory").length).toBeLessThanOrEqual(
          facts.gpus.length,
        );
        if (facts.release !== undefined)
          expect((facts.release.blocks_compared ?? 0) + (facts.release.disks_reported ?? 0)).toBeGreaterThan(0);
        expect((facts.residue?.items ?? []).filter(({ status }) => status !== "clean")).toEqual([]);
      }),
      { numRuns: 1_500 },
    );
  });

  it("never improves when a step gets worse, a task is left out or the signature is missing", () => {
    const rank = { clean: 2, incomplete: 1, not_clean: 0 } as const;
    fc.assert(
      fc.property(anyFacts, fc.nat(), (facts, at) => {
        const before = rank[buildRecord(facts).record.verdict];
        const unsigned = rank[buildRecord({ ...facts, unsigned_reason: "gone" }).record.verdict];
        expect(unsigned).toBeLessThanOrEqual(before);
        expect(unsigned).toBeLessThan(2);
        const tasks = facts.tasks.map((one, n) =>
          n === facts.tasks.length - 1
            ? {
                ...one,
                steps: one.steps.map((s, i) =>
                  i === at % one.steps.length ? { ...s, outcome: "failed" as const } : s,
                ),
              }
            : one,
        );
        expect(rank[buildRecord({ ...facts, tasks }).record.verdict]).toBeLessThanOrEqual(before);
      }),
      { numRuns: 1_000 },
    );
  });

  it("follows from the finished record again, so that a reader can check it", () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const { record } = buildRecord(facts);
        expect(judge(record).verdict).toBe(record.verdict);
        for (const { code } of record.reasons) expect(VERDICT_REASONS).toHaveProperty(code);
      }),
      { numRuns: 1_000 },
    );
  });
});
