import { createHash } from "node:crypto";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newTaskId } from "../test/fakes/hub/orders.ts";
import { Journal, type JournalEntry } from "./journal.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "muster-journal-"));
  file = join(folder, "agent", "journal");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const entry = (state: JournalEntry["state"], more: Partial<JournalEntry> = {}): JournalEntry => ({
  task_id: newTaskId(),
  epoch: 1,
  state,
  type: "node.drain",
  ...more,
});
const finished = (more: Partial<JournalEntry> = {}) =>
  entry("finished", { reply: { ok: true, result: { text: "line\nbreak" } }, ...more });

async function written(...entries: JournalEntry[]): Promise<void> {
  const journal = await Journal.open(file);
  for (const one of entries) await journal.record(one);
  await journal.close();
}
async function reopened(): Promise<readonly JournalEntry[]> {
  const journal = await Journal.open(file);
  await journal.close();
  return journal.entries;
}

describe("journal", () => {
  it("keeps its records over a restart, readable by root only", async () => {
    const entries = [entry("received"), entry("started"), finished(), entry("reported")];
    await written(...entries);
    expect(await reopened()).toEqual(entries);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("knows the result of a task before and after the hub has acknowledged it, also over a restart", async () => {
    const reply = { ok: true, result: { b: 1, a: [null, "ü"] } } as const;
    const sha256 = createHash("sha256").update('{"a":[null,"ü"],"b":1}').digest("hex");
    const first = finished({ reply, epoch: 3 });
    await written(first);
    const journal = await Journal.open(file);
    expect(journal.resultOf(first.task_id)).toEqual({ epoch: 3, sha256 });
    const { reply: _acknowledged, ...rest } = first;
    await journal.record({ ...rest, state: "reported", result_sha256: sha256 });
    await journal.close();
    const again = await Journal.open(file);
    expect(again.resultOf(first.task_id)).toEqual({ epoch: 3, sha256 });
    expect(again.resultOf(newTaskId())).toBeNull();
    await again.close();
  });

  it("knows no result of a failed or unfinished task", async () => {
    const failed = finished({ reply: { ok: false, error: "interrupted", message: "m" } });
    const begun = entry("started");
    await written(failed, begun);
    const journal = await Journal.open(file);
    expect([failed, begun].map(({ task_id }) => journal.resultOf(task_id))).toEqual([null, null]);
    await journal.close();
  });

  it("keeps the newest state of a delivery and the highest epoch of a task", async () => {
    const first = entry("received", { epoch: 2 });
    await written(first, { ...first, state: "started" }, { ...first, epoch: 1, state: "finished" });
    expect(await reopened()).toEqual([{ ...first, state: "started" }]);
  });

  it("loses at most the record being written when the power fails", async () => {
    const entries = [finished(), entry("started"), finished()];
    await written(...entries);
    const whole = readFileSync(file);
    for (let length = 0; length <= whole.length; length += 7) {
      writeFileSync(file, whole.subarray(0, length));
      const lines = whole.subarray(0, length).toString().split("\n").length - 1;
      const found = await reopened();
      expect(found.length).toBeGreaterThanOrEqual(lines);
      expect(found).toEqual(entries.slice(0, found.length));
    }
  });

  it("continues after an incomplete record, so that the next record is complete", async () => {
    const before = finished();
    await written(before);
    appendFileSync(file, '0123456789abcdef {"task_id":');
    const after = entry("started");
    await written(after);
    expect(await reopened()).toEqual([before, after]);
  });

  it("opens a file of any bytes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        mkdirSync(join(folder, "agent"), { recursive: true });
        writeFileSync(file, bytes);
        expect(await reopened()).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });

  it("writes concurrent records one after the other", async () => {
    const journal = await Journal.open(file);
    const entries = Array.from({ length: 40 }, () => finished());
    await Promise.all(entries.map((one) => journal.record(one)));
    await journal.close();
    expect(await reopened()).toEqual(entries);
  });

  it("limits its size, and forgets only reported deliveries", async () => {
    const journal = await Journal.open(file);
    const open = finished();
    await journal.record(open);
    const reply = { ok: false as const, error: "write_failed", message: "x".repeat(4000) };
    for (let i = 0; i < 700; i += 1) await journal.record(entry("reported", { reply }));
    expect(statSync(file).size).toBeLessThan(5 * 1024 * 1024);
    expect(journal.entries).toContainEqual(open);
    expect(journal.digest(10)).toHaveLength(10);
    expect(journal.digest(10)).toContainEqual({ task_id: open.task_id, epoch: 1, state: "finished" });
    await journal.close();
    expect((await reopened()).length).toBeLessThanOrEqual(501);
  });

  it("reports that it cannot write, refuses records, and recovers when it can write again", async () => {
    mkdirSync(file, { recursive: true }); // The write of the agent's journal fails, because a folder stands in the place of the journal file.
    mkdirSync(join(file, "in-the-way"));
    await expect(Journal.open(file)).rejects.toThrow(/EISDIR/);
    rmSync(file, { recursive: true });
    mkdirSync(`${file}.new`);
    const journal = await Journal.open(file);
    expect(journal.fault).toMatch(/EISDIR/);
    await expect(journal.record(entry("received"))).rejects.toThrow(/EISDIR/);
    expect(journal.entries).toEqual([]);
    rmSync(`${file}.new`, { recursive: true });
    const later = entry("received");
    await journal.record(later);
    expect(journal.fault).toBeNull();
    await journal.close();
    expect(await reopened()).toEqual([later]);
  });
});
