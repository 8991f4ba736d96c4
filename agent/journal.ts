import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { TaskId } from "../shared/ids.ts";
import { JOURNAL_STATES, type JournalState, WireReply } from "../shared/protocol/frames.ts";

const Entry = z.strictObject({
  task_id: TaskId,
  epoch: z.int().min(1),
  state: z.enum(JOURNAL_STATES),
  type: z.string(),
  reply: WireReply.optional(),
});
export type JournalEntry = z.output<typeof Entry>;

/** Deliveries that are remembered after they were reported: more than a hub would ever offer again. */
const KEEP_REPORTED = 500;

/**
 * What became of each delivery, on disk before anything follows from it: `received -> started -> finished -> reported`. It knows the highest epoch
 * of each task, which is what makes a replay void, and keeps a finished reply until the hub has acknowledged it. It never holds a task's
 * input, which may carry a secret.
 */
export class Journal {
  readonly #file: string;
  readonly #handle: FileHandle;
  readonly #latest: Map<TaskId, JournalEntry>;

  private constructor(file: string, handle: FileHandle, latest: Map<TaskId, JournalEntry>) {
    this.#file = file;
    this.#handle = handle;
    this.#latest = latest;
  }

  /** A torn last line, as a power cut leaves it, is dropped; the file is written anew with what still matters. */
  static async open(file: string): Promise<Journal> {
    await mkdir(dirname(file), { recursive: true });
    const text = await readFile(file, "utf8").catch((error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
      throw error;
    });
    const latest = new Map<TaskId, JournalEntry>();
    for (const line of text.split("\n")) {
      const entry = parseLine(line);
      if (entry === null) continue;
      // Last written last: a map keeps the order of insertion.
      latest.delete(entry.task_id);
      latest.set(entry.task_id, entry);
    }
    forgetOldest(latest);
    const handle = await rewrite(file, [...latest.values()]);
    return new Journal(file, handle, latest);
  }

  get file(): string {
    return this.#file;
  }

  highestEpoch(taskId: TaskId): number {
    return this.#latest.get(taskId)?.epoch ?? 0;
  }

  get entries(): readonly JournalEntry[] {
    return [...this.#latest.values()];
  }

  /** On disk when it resolves. A full disk rejects, and what was to follow must not. */
  async record(entry: JournalEntry): Promise<void> {
    await this.#handle.appendFile(lineOf(entry));
    await this.#handle.datasync();
    this.#latest.delete(entry.task_id);
    this.#latest.set(entry.task_id, entry);
  }

  /** Replies that the hub has not acknowledged. */
  unreported(): JournalEntry[] {
    return this.entries.filter((entry) => entry.state === "finished");
  }

  withState(state: JournalState): JournalEntry[] {
    return this.entries.filter((entry) => entry.state === state);
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

const checksum = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

function lineOf(entry: JournalEntry): string {
  const text = JSON.stringify(entry);
  return `${checksum(text)} ${text}\n`;
}

function parseLine(line: string): JournalEntry | null {
  const text = line.slice(17);
  if (line.length < 18 || line.slice(0, 16) !== checksum(text)) return null;
  const parsed = Entry.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : null;
}

function forgetOldest(latest: Map<TaskId, JournalEntry>): void {
  const reported = [...latest.values()].filter((entry) => entry.state === "reported");
  for (const entry of reported.slice(0, Math.max(0, reported.length - KEEP_REPORTED))) latest.delete(entry.task_id);
}

async function rewrite(file: string, entries: readonly JournalEntry[]): Promise<FileHandle> {
  const temporary = `${file}.new`;
  const handle = await open(temporary, "w", 0o600);
  await handle.writeFile(entries.map(lineOf).join(""));
  await handle.sync();
  await rename(temporary, file);
  const folder = await open(dirname(file), "r");
  await folder.sync().finally(() => folder.close());
  return handle;
}
