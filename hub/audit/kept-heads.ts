import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { ChainPoint } from "../../shared/audit-chain.ts";

const FILE = "audit-head.json";
/** The file name of a head that the audit chain in the database no longer has. The file of a lost head stays until a person removes it. */
const LOST = /^audit-head[.]lost-\d+[.]json$/;

const Head = z.strictObject({ sequence: z.int().min(1), entry_sha256: z.string().regex(/^[0-9a-f]{64}$/) });

export interface KeptHead extends ChainPoint {
  readonly file: string;
}

/**
 * The heads of the audit chain in the hub's state folder. A chain cannot show that its newest entries were cut off, so the hub keeps the end of the
 * chain outside the database (decision L1).
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

  /** Returns all heads of the audit chain that the hub keeps: the present head, and the heads that the chain has lost. */
  async list(): Promise<KeptHead[]> {
    const names = (await readdir(this.#folder)).filter((name) => name === FILE || LOST.test(name));
    const heads = await Promise.all(names.map(async (file) => ({ file, head: await this.#read(file) })));
    return heads.flatMap(({ file, head }) => (head === null ? [] : [{ ...head, file }]));
  }

  /** The number of lost heads of the audit chain whose files no person has removed yet. */
  async countLost(): Promise<number> {
    return (await readdir(this.#folder)).filter((name) => LOST.test(name)).length;
  }

  /**
   * Keeps the new end of the chain. If the audit chain no longer has the head that was kept before, the earlier head gets a file of its own, and
   * `keep` returns it. `has` returns true if the database's audit chain still contains the kept head, or if retention has removed this entry.
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

  /** Returns null if the file does not exist. An unreadable head file is an error, because somebody may have damaged it on purpose. */
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
