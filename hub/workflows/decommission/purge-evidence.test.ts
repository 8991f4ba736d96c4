import { describe, expect, it } from "vitest";
import type { CleaningStep } from "../../../shared/tasks/cleaning-step.ts";
import type { TaskInput } from "../../../shared/tasks/index.ts";
import { type Ordered, refusalOf } from "./purge-evidence.ts";

const [SEED, OTHER] = ["0f".repeat(32), "1e".repeat(32)];
const order = (more: Partial<TaskInput<"node.storage_cleanup">> = {}): TaskInput<"node.storage_cleanup"> => ({
  scope: "all",
  temporary: true,
  scratch: [],
  shares: [],
  free_space: false,
  weka_prefixes: [],
  disks: [{ serial: "S-1", wwn: null }],
  disk_pool: ["S-2"],
  sample_seed: SEED,
  plan: false,
  ...more,
});
const ordered = (more: Partial<Ordered> = {}): Ordered => ({ order: order(), adopted: null, bytes: 4_096, ...more });
const step = (evidence: CleaningStep["evidence"] = {}, target = "S-1"): CleaningStep => ({
  step: "disk",
  target,
  outcome: "ok",
  message: "",
  evidence: {
    media_kind: "disk",
    serial: target,
    technique: "NVMe sanitize, crypto erase",
    method: "purge",
    sample_seed: SEED,
    bytes_treated: 4_096,
    bytes_total: 4_096,
    verification: "markers at 704 blocks of 4096 bytes",
    verification_result: "all 704 blocks read differently than before",
    ...evidence,
  },
});
const ADOPTED = { adopted_task: "019a8b9c-0000-7000-8000-000000000001", sample_seed: OTHER };

describe("the evidence of a purge", () => {
  it.each([
    ["a disk that the order names", step(), ordered()],
    ["a disk of the order's pool", step({}, "S-2"), ordered()],
    ["a disk that the inventory does not have", step(), ordered({ bytes: null })],
    ["a disk with more bytes than the host shows", step(), ordered({ bytes: 4_000 })],
    ["a format, which only clears", step({ technique: "NVMe format, user data erase", method: "clear" }), ordered()],
    ["the purge of an earlier task", step(ADOPTED), ordered({ adopted: order({ sample_seed: OTHER }) })],
  ])("fits for %s", (_what, one, about) => {
    expect(refusalOf(one, about)).toBeNull();
  });

  it.each([
    ["not_ordered", "a disk that nobody named", step({}, "S-9"), ordered()],
    ["other_serial", "another disk", step({ serial: "S-2" }), ordered()],
    ["other_serial", "no disk", step({ media_kind: "tape" }), ordered()],
    ["other_seed", "another sample", step({ sample_seed: OTHER }), ordered()],
    ["other_seed", "no sample", step({ sample_seed: null }), ordered()],
    ["other_seed", "an order without a seed", step(), ordered({ order: { ...order(), sample_seed: "" } })],
    [
      "other_seed",
      "the order's seed for an earlier task",
      step({ ...ADOPTED, sample_seed: SEED }),
      ordered({ adopted: order({ sample_seed: OTHER }) }),
    ],
    ["other_task", "an unknown earlier task", step(ADOPTED), ordered()],
    [
      "other_task",
      "an earlier task for other disks",
      step(ADOPTED),
      ordered({ adopted: order({ disks: [], disk_pool: [], sample_seed: OTHER }) }),
    ],
    ["other_technique", "an unknown technique", step({ technique: "hammer" }), ordered()],
    ["other_technique", "a member of every object", step({ technique: "constructor" }), ordered()],
    [
      "other_technique",
      "a format that calls itself purge",
      step({ technique: "NVMe format, crypto erase" }),
      ordered(),
    ],
    ["other_technique", "no class", step({ method: null }), ordered()],
    ["other_size", "a part of the disk", step({ bytes_treated: 512 }), ordered()],
    ["other_size", "no bytes", step({ bytes_treated: 0, bytes_total: 0 }), ordered()],
    ["other_size", "a number as text", step({ bytes_treated: "4096", bytes_total: "4096" }), ordered()],
    ["other_size", "fewer bytes than the inventory's disk has", step(), ordered({ bytes: 8_192 })],
    ["not_verified", "no verification", step({ verification: null }), ordered()],
    ["not_verified", "no result of the verification", step({ verification_result: "" }), ordered()],
  ])("is refused as %s: %s", (code, _what, one, about) => {
    expect(refusalOf(one, about)?.code).toBe(code);
  });
});
