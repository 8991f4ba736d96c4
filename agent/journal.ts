import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { TaskId } from "../shared/ids.ts";
import { canonicalJson } from "../shared/json.ts";
import { JOURNAL_STATES, type JournalState, WireReply } from "../shared/protocol/frames.ts";
import { Sha256 } from "../shared/sanitization-format.ts";
import { messageOf } from "./message-of.ts";

const Entry = z.strictObject({
  task_id: TaskId,
  epoch: z.int().min(1),
  state: z.enum(JOURNAL_STATES),
  type: z.string(),
  reply: WireReply.optional(),
  /** The SHA-256 of a successful task's result, which the agent keeps after the hub has acknowledged the reply. */
  result_sha256: Sha256.optional(),
});
export type JournalEntry = z.output<typeof Entry>;

/** How many reported deliveries of tasks the journal keeps, which is more than the number of deliveries that a hub may still offer a second time. */
const KEEP_REPORTED = 500;
/** The size, in bytes, above which the agent rewrites its journal file without outdated records. */
const COMPACT_BYTES = 1024 * 1024;

/**
 * Stores each state of a task's delivery (`received -> started -> finished -> reported`) on disk before the agent acts on the delivery. The journal
 * keeps the epoch (delivery number) of each task's latest delivery, so that a replayed order has no effect. The journal keeps a task's reply until
 * the hub has acknowledged the reply. After the hub has acknowledged a reply, the journal still keeps the result's SHA-256, so that the agent can
 * vouch for the result (architecture 14.5). The journal never contains a task's input, which may contain a secret.
 */
export class Journal {
  readonly #file: string;
  readonly #latest: Map<TaskId, JournalEntry>;
  /**
   * The open journal file, or null while the file cannot be written, for example on a full disk. While its journal file cannot be written, the agent
   * runs on, reports the fault and accepts no order.
   */
  #handle: FileHandle | null = null;
  /** The position at which the journal writes next: directly after its last complete line, so that it overwrites the remains of a failed write. */
  #size = 0;
  #compactAt = COMPACT_BYTES;
  #fault: string | null = null;
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(file: string, latest: Map<TaskId, JournalEntry>) {
    this.#file = file;
    this.#latest = latest;
  }

  /** Opens the journal, drops a last line that a power cut left incomplete, and rewrites the file with the valid records. */
  static async open(file: string): Promise<Journal> {
    const text = await readFile(file, "utf8").catch((error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
      throw error;
    });
    const latest = new Map<TaskId, JournalEntry>();
    for (const line of text.split("\n")) {
      const entry = parseLine(line);
      if (entry !== null) remember(latest, entry);
    }
    forgetOldest(latest);
    const journal = new Journal(file, latest);
    // The agent's first readiness signal reports a failed rewrite of the journal.
    await journal.#rewrite().catch(() => undefined);
    return journal;
  }

  get file(): string {
    return this.#file;
  }

  get fault(): string | null {
    return this.#fault;
  }

  highestEpoch(taskId: TaskId): number {
    return this.#latest.get(taskId)?.epoch ?? 0;
  }

  get entries(): readonly JournalEntry[] {
    return [...this.#latest.values()];
  }

  /** Returns at most `limit` deliveries of tasks for the agent's hello frame, and prefers those whose end the hub does not know. */
  digest(limit: number): Pick<JournalEntry, "task_id" | "epoch" | "state">[] {
    const open = this.entries.filter((entry) => entry.state !== "reported");
    const reported = this.entries.filter((entry) => entry.state === "reported");
    return [...reported, ...open].slice(-limit).map(({ task_id, epoch, state }) => ({ task_id, epoch, state }));
  }

  /**
   * Resolves when the journal's record is on disk. If the disk is full, the promise of `record` rejects, and the caller may not continue with the
   * task. The journal drops a record with an older epoch (delivery number of a task) than the newest known one, because a task's epoch never
   * decreases.
   */
  record(entry: JournalEntry): Promise<void> {
    const written = this.#writing.then(() => this.#append(entry));
    // If the journal cannot write a record, only the caller of `record` learns it, and the journal still tries to write the next record.
    this.#writing = written.catch(() => undefined);
    return written;
  }

  async #append(entry: JournalEntry): Promise<void> {
    if (entry.epoch < this.highestEpoch(entry.task_id)) return;
    const line = Buffer.from(lineOf(entry));
    try {
      const handle = this.#handle ?? (await this.#rewrite());
      await writeAll(handle, line, this.#size);
      await handle.datasync();
    } catch (error) {
      this.#fault = messageOf(error);
      throw error;
    }
    this.#fault = null;
    this.#size += line.length;
    remember(this.#latest, entry);
    if (this.#size < this.#compactAt) return;
    forgetOldest(this.#latest);
    // If the rewrite of the journal fails, the old file, which already contains the new record, stays in use. If the disk is faulty, the next failed
    // write to the journal file reports it.
    await this.#rewrite().catch(() => undefined);
    this.#compactAt = Math.max(COMPACT_BYTES, 2 * this.#size);
  }

  async #rewrite(): Promise<FileHandle> {
    try {
      const written = await writeAnew(this.#file, this.entries);
      await this.#handle?.close();
      this.#handle = written.handle;
      this.#size = written.size;
      return written.handle;
    } catch (error) {
      this.#fault = messageOf(error);
      throw error;
    }
  }

  unreported(): JournalEntry[] {
    return this.withState("finished");
  }

  /** Returns the newest delivery of a task whose result the journal knows, with the result's SHA-256, or null. */
  resultOf(taskId: TaskId): { readonly epoch: number; readonly sha256: string } | null {
    const entry = this.#latest.get(taskId);
    const sha256 = entry === undefined ? undefined : (entry.result_sha256 ?? resultSha256(entry.reply));
    return entry === undefined || sha256 === undefined ? null : { epoch: entry.epoch, sha256 };
  }

  withState(state: JournalState): JournalEntry[] {
    return this.entries.filter((entry) => entry.state === state);
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#handle?.close();
  }
}

/** The SHA-256 of a task's result in canonical JSON, which the hub compares with that of its stored copy. */
export const resultSha256 = (reply: WireReply | undefined): string | undefined =>
  reply?.ok === true ? createHash("sha256").update(canonicalJson(reply.result)).digest("hex") : undefined;

interface Written {
  readonly handle: FileHandle;
  readonly size: number;
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

/** Puts the journal entry of a task at the end of the map, because a JavaScript map keeps the order of insertion. */
function remember(latest: Map<TaskId, JournalEntry>, entry: JournalEntry): void {
  latest.delete(entry.task_id);
  latest.set(entry.task_id, entry);
}

function forgetOldest(latest: Map<TaskId, JournalEntry>): void {
  const reported = [...latest.values()].filter((entry) => entry.state === "reported");
  for (const entry of reported.slice(0, Math.max(0, reported.length - KEEP_REPORTED))) latest.delete(entry.task_id);
}

/** A single write to a file may write only some of the bytes, for example just before the disk is full. */
async function writeAll(handle: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

async function writeAnew(file: string, entries: readonly JournalEntry[]): Promise<Written> {
  await mkdir(dirname(file), { recursive: true });
  const temporary = `${file}.new`;
  const bytes = Buffer.from(entries.map(lineOf).join(""));
  const handle = await open(temporary, "w", 0o600);
  try {
    await writeAll(handle, bytes, 0);
    await handle.sync();
    await rename(temporary, file);
  } catch (error) {
    await handle.close();
    await rm(temporary, { force: true });
    throw error;
  }
  const folder = await open(dirname(file), "r");
  await folder.sync().finally(() => folder.close());
  return { handle, size: bytes.length };
}
