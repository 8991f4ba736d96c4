import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { NodeId, TaskId, WorkflowId } from "./ids.ts";
import type { RecordFacts } from "./sanitization-build.ts";
import {
  ERASE_EVIDENCE,
  GPU_LEVELS,
  LOST_BY,
  type RecordRelease,
  type RecordTask,
  type ResidueItem,
  TRUST_LEVELS,
} from "./sanitization-record.ts";
import { CleaningOutcome, type CleaningStep } from "./tasks/cleaning-step.ts";

const HEX = "a".repeat(64);
const AT = "2026-11-23T08:00:00.000Z";

export const step = (more: Partial<CleaningStep> = {}): CleaningStep => ({
  step: "home",
  target: "/home/ann",
  outcome: "ok",
  message: "",
  evidence: {},
  ...more,
});
export const task = (more: Partial<RecordTask> = {}): RecordTask => ({
  task_id: TaskId.parse(randomUUID()),
  epoch: 1,
  type: "allocation.revoke_user",
  result_sha256: HEX,
  error: null,
  steps: [step()],
  ...more,
});
export const item = (more: Partial<ResidueItem> = {}): ResidueItem => ({
  item: "accounts",
  status: "clean",
  names: [],
  more: 0,
  reason: null,
  ...more,
});

/**
 * The facts of a release: the hub saw MAAS release the machine with an erase of its disks, and the agent compared disk blocks with their content
 * before the release.
 */
export const release = (more: Partial<RecordRelease> = {}): RecordRelease => ({
  maas_system_id: "x7k2pq",
  generation: 2,
  erase: "secure",
  evidence: "reported_by_maas",
  waived_by: null,
  blocks_compared: 64,
  ...more,
});

/** The facts of a cleaning between two tenants that lead to the verdict `clean`. */
export const cleanFacts = (more: Partial<RecordFacts> = {}): RecordFacts => ({
  record_id: randomUUID(),
  node: {
    id: NodeId.parse(randomUUID()),
    hostname: "c07u41",
    generation: 2,
    system_id: "x7k2pq",
    vendor: "Dell",
    product: "XE9680",
    system_uuid: null,
    property_number: "INV-4711",
  },
  location: { site: "dc1", room: "A", rack: "r7", unit: 12 },
  sequence: 1,
  previous_sha256: null,
  allocation: { id: randomUUID(), tenant: "acme", login_user: "ann", granted_root: false, from: AT, to: AT },
  operation: {
    decommission_id: WorkflowId.parse(randomUUID()),
    mode: "soft_reset",
    reason: "the tenant left",
    requested_by: "admin",
  },
  trust: "in_place",
  started_at: AT,
  finished_at: AT,
  required: [{ type: "allocation.revoke_user", step: null }],
  tasks: [task()],
  unconfirmed_tasks: [],
  agent: { version: "0.2.0", boot_id: randomUUID(), certificate_serial: "1f", public_key_sha256: HEX },
  hub: { version: "0.2.0" },
  residue: { has_baseline: true, items: [item()] },
  gpus: [],
  known_media: [],
  disk_samples: [],
  statements: [],
  unsigned_reason: null,
  ...more,
});

const types = fc.constantFrom(
  "allocation.revoke_user",
  "node.storage_cleanup",
  "node.gpu_scrub",
  "node.validate_clean",
  "node.sample_disks",
);
const names = fc.constantFrom("home", "processes", "disk");
const steps = fc.record({
  step: names,
  target: fc.constantFrom("a", "b"),
  outcome: fc.constantFrom(...CleaningOutcome.options),
  message: fc.string({ maxLength: 20 }),
  evidence: fc.dictionary(
    fc.constantFrom("media_kind", "method", "serial"),
    fc.constantFrom("disk", "purge", "clear", "SER1"),
  ),
});

/**
 * Generates random facts about a cleaning between two tenants, for tests of the sanitization record's verdict, with all kinds of facts on which the
 * verdict depends. The generated facts have only a few task types, cleaning steps and targets, but every outcome of a cleaning step, and any fact
 * that may be absent is sometimes absent.
 */
export const anyFacts: fc.Arbitrary<RecordFacts> = fc
  .record({
    required: fc.array(fc.record({ type: types, step: fc.option(names) }), { maxLength: 3 }),
    tasks: fc.array(
      fc.record({
        type: types,
        steps: fc.array(steps, { maxLength: 4 }),
        failed: fc.boolean(),
        unconfirmed: fc.boolean(),
      }),
      { maxLength: 4 },
    ),
    residue: fc.option(
      fc.record({
        has_baseline: fc.boolean(),
        items: fc.array(
          fc.record({
            item: fc.constantFrom("accounts", "units"),
            status: fc.constantFrom("clean", "found", "unreadable"),
            names: fc.array(fc.string({ maxLength: 10 }), { maxLength: 3 }),
            more: fc.constant(0),
            reason: fc.constant(null),
          }),
          { maxLength: 3 },
        ),
      }),
    ),
    gpus: fc.array(
      fc.record({
        uuid: fc.constantFrom("GPU-1", "GPU-2"),
        level: fc.option(fc.constantFrom(...GPU_LEVELS)),
        share: fc.constantFrom(0, 0.5, 1),
        bytes_overwritten: fc.constant(null),
        bytes_total: fc.constant(null),
        required_level: fc.option(fc.constantFrom(...GPU_LEVELS)),
        required_share: fc.constantFrom(0, 0.5, 1),
      }),
      { maxLength: 2 },
    ),
    known_media: fc.array(
      fc.record({ kind: fc.constantFrom("disk", "gpu_memory"), model: fc.constant(null), serial: fc.constant(null) }),
      { maxLength: 2 },
    ),
    trust: fc.constantFrom(...TRUST_LEVELS),
    release: fc.option(
      fc
        .record({
          erase: fc.constantFrom("none", "quick", "secure"),
          evidence: fc.constantFrom(...ERASE_EVIDENCE),
          waived_by: fc.option(fc.constant("ann")),
          blocks_compared: fc.option(fc.constant(64), { nil: undefined }),
          disks_reported: fc.option(fc.constant(2), { nil: undefined }),
        })
        .map(({ blocks_compared, disks_reported, ...more }) => {
          const { blocks_compared: _, ...plain } = release(more);
          return {
            ...plain,
            ...(blocks_compared === undefined ? {} : { blocks_compared }),
            ...(disks_reported === undefined ? {} : { disks_reported }),
          };
        }),
      { nil: undefined },
    ),
    without_turnover: fc.option(
      fc.record({
        because: fc.constantFrom(...LOST_BY),
        begun: fc.option(fc.constant({ decommission_id: WorkflowId.parse(randomUUID()), mode: "soft_reset" })),
      }),
      { nil: undefined },
    ),
    unsigned_reason: fc.option(fc.constant("the agent is gone")),
  })
  .map(({ tasks, release: released, without_turnover: without, ...others }) => {
    const given = without === undefined ? others : { ...others, without_turnover: without };
    const more = released === undefined ? given : { ...given, release: released };
    const made = tasks.map(({ type, steps: own, failed }) =>
      failed ? task({ type, result_sha256: null, error: "interrupted", steps: [] }) : task({ type, steps: own }),
    );
    const unconfirmed_tasks = made.filter((_, index) => tasks[index]?.unconfirmed).map(({ task_id }) => task_id);
    return cleanFacts({ ...more, tasks: made, unconfirmed_tasks });
  });
