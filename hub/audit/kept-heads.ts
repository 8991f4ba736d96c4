import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { ChainPoint } from "../../shared/audit-chain.ts";

const FILE = "audit-head.json";
/**
 * The name of a file with a lost head: a former newest entry that the audit chain in the database no longer has. The file of a lost head of the audit
 * chain stays until a person removes the file.
 */
const LOST = /^audit-head[.]lost-\d+[.]json$/;

const Head = z.strictObject({ sequence: z.int().min(1), entry_sha256: z.string().regex(/^[0-9a-f]{64}$/) });

export interface KeptHead extends ChainPoint {
  readonly file: string;
}

/**
 * The files in the hub's state folder that name the newest entry (the head) of the audit chain, and the heads that the chain has lost. A chain cannot
 * show that its newest entries were cut off, so the hub keeps the end of the chain outside the database (decision L1).
 */
export class KeptHeads {
  readonly #folder: string;
  #head: ChainPoint | null = null;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(folder: string): Promise<KeptHeads> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const heads = new KeptHeads(folder);
    heads.#head = await heads.#read(FILE);
    return heads;
  }

  /** Returns the heads of the audit chain of which the hub keeps files: the present newest entry, and former newest entries that the chain has lost. */
  async list(): Promise<KeptHead[]> {
    const names = (await readdir(this.#folder)).filter((name) => name === FILE || LOST.test(name));
    const heads = await Promise.all(names.map(async (file) => ({ file, head: await this.#read(file) })));
    return heads.flatMap(({ file, head }) => (head === null ? [] : [{ ...head, file }]));
  }

  /** The number of files with lost heads of the audit chain that no person has removed yet. */
  async countLost(): Promise<number> {
    return (await readdir(this.#folder)).filter((name) => LOST.test(name)).length;
  }

  /**
   * Keeps the new end of the chain. If the audit chain no longer has the head that was stored before, the lost head gets a file of its own, and
   * `keep` returns it. `has` returns true if the audit chain in the database still contains the stored head, or if retention has removed this old
   * entry.
   */
  async keep(head: ChainPoint, has: (kept: ChainPoint) => Promise<boolean>): Promise<ChainPoint | null> {
    const kept = this.#head;
    if (head.sequence === kept?.sequence && head.entry_sha256 === kept.entry_sha256) return null;
    const lost = kept !== null && !(await has(kept));
    if (kept === null && head.sequence === 0) return null;
    if (lost) await rename(join(this.#folder, FILE), join(this.#folder, `audit-head.lost-${kept.sequence}.json`));
    if (head.sequence > 0) await this.#write(head);
    this.#head = head.sequence === 0 ? null : head;
    return lost ? kept : null;
  }

  async #write({ sequence, entry_sha256 }: ChainPoint): Promise<void> {
    // Several hubs may share one state folder, and hubs in containers may have one process id, so each write has a temporary file of its own.
    const next = join(this.#folder, `${FILE}.${randomUUID()}`);
    const handle = await open(next, "w", 0o600);
    try {
      await handle.writeFile(`${JSON.stringify({ sequence, entry_sha256 })}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(next, join(this.#folder, FILE));
  }

  /**
   * Returns null if the file does not exist. An unreadable file with the head of the audit chain is an error, because somebody may have damaged it on
   * purpose.
   */
  async #read(name: string): Promise<ChainPoint | null> {
    try {
      return Head.parse(JSON.parse(await readFile(join(this.#folder, name), "utf8")));
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
      throw new Error(`${join(this.#folder, name)} is no head of the audit chain. Move the file away.`, {
        cause: error,
      });
    }
  }
}
