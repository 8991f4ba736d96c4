import { describe, expect, it } from "vitest";
import { newTaskId } from "../../../test/fakes/hub/orders.ts";
import { failedEvidence, type PurgeEntry } from "./purge-journal.ts";

const task = newTaskId();
const entry = (state: PurgeEntry["state"]): PurgeEntry => ({
  format: "muster-purge/1",
  serial: "S-1",
  task_id: task,
  adopted_task: null,
  boot_id: "b",
  state,
  technique: "nvme_sanitize_block",
  seed: "ab",
  blocks: 1,
  status_before: "SSTAT 0x0",
  facts: { media_kind: "disk", model: "FAST SSD", serial: "S-1", bytes_total: 4096 },
  end: null,
});
const NOTHING = { media_kind: "disk", serial: "S-1" };
const FACTS = { ...NOTHING, model: "FAST SSD", bytes_total: 4096, markers_written: true };
const SENT = { technique: "NVMe sanitize, block erase", status_before: "SSTAT 0x0", command_sent: true };

describe("the evidence of a disk whose worker process was lost", () => {
  it.each([
    ["before the markers", { ok: true, entry: null } as const, NOTHING],
    ["while it wrote the markers", { ok: true, entry: entry("marking") } as const, { ...FACTS, command_sent: false }],
    ["after the command", { ok: true, entry: entry("started") } as const, { ...FACTS, ...SENT }],
    ["with an unreadable journal", { ok: false, detail: "?" } as const, NOTHING],
  ])("%s", (_when, read, evidence) => {
    expect(failedEvidence(task, "S-1", read)).toEqual(evidence);
  });

  it("has nothing of the purge of another task", () => {
    expect(failedEvidence(newTaskId(), "S-1", { ok: true, entry: entry("started") })).toEqual(NOTHING);
  });
});
