import fc from "fast-check";
import { expect, it } from "vitest";
import { buildRecord } from "../../shared/sanitization-build.ts";
import { anyFacts, release, step, task } from "../../shared/sanitization-facts.fixture.ts";
import type { SanitizationRecord } from "../../shared/sanitization-record.ts";
import { sanitizationPage } from "./sanitization-page.ts";

const SIGNED = {
  recordSha256: "sha-of-record",
  agentSignature: "signature-of-agent",
  countersignature: "text-of-hub",
  hubSignature: "signature-of-hub",
  orderKey: "key-of-hub",
};
/** Each text and number of a record, apart from texts with characters that HTML writes in another way. */
const leavesOf = (value: unknown): string[] => {
  if (typeof value === "string" || typeof value === "number") return [String(value)];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(leavesOf) : [];
};
const VALIDATION = {
  validatedBy: "vera",
  role: "operator",
  isPerson: true,
  title: "security officer",
  result: "accepted",
  reason: "compared with the rack",
  recordSha256: "sha-of-validated-record",
  createdAt: new Date("2026-11-28T09:00:00.000Z"),
};
const missingOn = (record: SanitizationRecord): string[] => {
  const page = sanitizationPage(record, SIGNED, [VALIDATION]);
  const { createdAt, ...validation } = VALIDATION;
  return [...leavesOf(record), ...leavesOf(SIGNED), ...leavesOf(validation), createdAt.toISOString()].filter(
    (leaf) => !/[&<>"'\p{Cc}]/u.test(leaf) && !page.includes(leaf),
  );
};

it("shows each text and number of the record and its signatures", () => {
  const purge = task({ type: "node.storage_cleanup", steps: [step({ step: "disk", target: "S-1" })] });
  fc.assert(
    fc.property(anyFacts, fc.boolean(), (facts, isWaived) => {
      const told = {
        ...facts,
        tasks: [...facts.tasks, purge],
        unconfirmed_tasks: [purge.task_id],
        refused_evidence: [{ task_id: purge.task_id, target: "S-1", code: "other_seed", message: "another sample" }],
        release: release({
          evidence: "none",
          waived_by: "ann",
          disks_reported: 3_141,
          blocks_compared: 2_718,
          blocks_doubted: 1_618,
          disks_blank: 1_414,
          disk_findings: ["disk S-9 kept its content"],
          ...(isWaived ? { disks_waived_by: "ben" } : {}),
        }),
        gpus: facts.gpus.map((gpu) => ({ ...gpu, bytes_overwritten: 80_000_000_001, bytes_total: 80_000_000_002 })),
      };
      expect(missingOn(buildRecord(told).record)).toEqual([]);
    }),
    { numRuns: 200 },
  );
});
