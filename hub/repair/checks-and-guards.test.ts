import { describe, expect, it } from "vitest";
import { NODE_STATUSES } from "../../shared/node-status.ts";
import { RECORD_VERDICTS } from "../../shared/sanitization-record.ts";
import { evidenceDigest, evidenceOfIssue, heldByLoop } from "./loop-guards.ts";
import { CHECK_CODES, type CheckFacts, failedChecks } from "./out-of-repair.ts";

const [BEFORE, CLEANED, AFTER] = [new Date(1_000), new Date(2_000), new Date(3_000)];
const RECORDS = [
  null,
  ...RECORD_VERDICTS.flatMap((verdict) =>
    [false, true].map((isRejected) => ({ id: "r", verdict, isRejected, at: CLEANED })),
  ),
];
const DOMAIN: readonly CheckFacts[] = (["full", "online"] as const).flatMap((mode) =>
  [null, ...NODE_STATUSES].flatMap((nodeStatus) =>
    [null, "w"].flatMap((heldBy) =>
      [null, "a"].flatMap((allocation) =>
        [[], ["agent.healthy is False"]].flatMap((lacking) =>
          RECORDS.flatMap((record) =>
            [null, BEFORE, AFTER].map((validatedAt) => ({
              ...{ mode, nodeStatus, heldBy, allocation, lacking, record, validatedAt },
            })),
          ),
        ),
      ),
    ),
  ),
);

describe("what keeps a machine in repair", () => {
  it("is every check that it has not passed, over the whole domain", () => {
    const seen = new Set<string>();
    for (const facts of DOMAIN) {
      const { mode, nodeStatus, heldBy, allocation, lacking, record, validatedAt } = facts;
      const isFull = mode === "full";
      const expected: Readonly<Record<(typeof CHECK_CODES)[number], boolean>> = {
        node_gone: nodeStatus === null || nodeStatus === "deleted",
        held_by_operation: heldBy !== null,
        in_use: isFull && allocation !== null,
        not_cleaned: isFull && record === null,
        not_clean: isFull && record !== null && record.verdict !== "clean",
        record_rejected: isFull && record?.verdict === "clean" && record.isRejected,
        out_of_service: nodeStatus !== "active",
        not_ready: lacking.length > 0,
        not_validated: validatedAt === null,
        validated_before_cleaning: isFull && record !== null && validatedAt === BEFORE,
      };
      const codes = failedChecks(facts).map(({ code }) => code);
      const wanted = expected.node_gone ? ["node_gone"] : CHECK_CODES.filter((code) => expected[code]);
      expect([...codes].sort(), JSON.stringify(facts)).toEqual([...wanted].sort());
      for (const code of codes) seen.add(code);
    }
    expect([...seen].sort()).toEqual([...CHECK_CODES].sort());
  });

  it("is nothing only after a clean record, a validation after it, and with a ready node", () => {
    const free = DOMAIN.filter((facts) => facts.mode === "full" && failedChecks(facts).length === 0);
    expect(free).toEqual([
      {
        ...{ mode: "full", nodeStatus: "active", heldBy: null, allocation: null, lacking: [] },
        ...{ record: { id: "r", verdict: "clean", isRejected: false, at: CLEANED }, validatedAt: AFTER },
      },
    ]);
    for (const facts of DOMAIN)
      for (const { message, next_action } of failedChecks(facts)) expect(message && next_action).not.toBe("");
  });
});

describe("the guards against a loop of repairs", () => {
  it("are a limit of attempts, and evidence that no attempt knew, over the whole domain", () => {
    for (const attempts of [0, 1, 2, 3, 4])
      for (const limit of [1, 3])
        for (const evidence of ["old", "new"]) {
          const held = heldByLoop({ attempts, limit, evidence, known: ["older", "old"] });
          const expected =
            attempts >= limit ? "attempts_spent" : attempts > 0 && evidence === "old" ? "no_new_evidence" : null;
          expect(held, `${attempts} of ${limit}, ${evidence}`).toBe(expected);
        }
  });

  it("see through case, spaces and punctuation, and not through other words", () => {
    expect(evidenceDigest("GPU 3 fell off the bus!")).toBe(evidenceDigest("  gpu 3   FELL off the bus"));
    expect(evidenceDigest("GPU 3 fell")).not.toBe(evidenceDigest("GPU 4 fell"));
    expect(evidenceOfIssue({ summary: "a", details: null })).toBe(evidenceDigest("a"));
    expect(evidenceOfIssue({ summary: "a", details: "b" })).not.toBe(evidenceOfIssue({ summary: "a", details: "c" }));
  });
});
