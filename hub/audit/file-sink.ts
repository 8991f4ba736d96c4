import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { SealedEntry } from "../../shared/audit-chain.ts";
import type { Sink } from "./export.ts";

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

/** Appends audit entries to a file as JSON lines. Only the hub's user can read a file that the hub makes. */
export function openAuditFile(path: string): Sink {
  let handle: FileHandle | null = null;
  const close = async (): Promise<void> => {
    const open = handle;
    handle = null;
    await open?.close();
  };
  return {
    write: async (entries) => {
      if (handle !== null && !(await isSame(handle, path))) await close();
      handle ??= await openAt(path);
      try {
        await handle.appendFile(entries.map(lineOf).join(""));
        await handle.datasync();
      } catch (error) {
        // A full disk leaves an incomplete last line in the audit file. `openAt` ends an incomplete last line, so that the repeated entry gets a line
        // of its own.
        await close();
        throw error;
      }
    },
    close,
  };
}

const lineOf = (entry: SealedEntry): string => `${JSON.stringify(entry)}\n`;

async function openAt(path: string): Promise<FileHandle> {
  const handle = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
  try {
    const about = await handle.stat();
    if (!about.isFile()) throw new Error(`${path} is no regular file. Set MUSTER_AUDIT_FILE to the path of a file.`);
    if (about.size === 0) await keepName(path);
    else if (!(await endsLine(handle, about.size))) await handle.appendFile("\n");
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * False if the audit file does not end with a complete line, because a hub was killed during a write or the disk was full. The hub writes the entry
 * of an incomplete last line again, on a line of its own.
 */
async function endsLine(handle: FileHandle, size: number): Promise<boolean> {
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === 0x0a;
}

/** The name of a new file survives a loss of power only after its folder is on the disk too. */
async function keepName(path: string): Promise<void> {
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function isSame(handle: FileHandle, path: string): Promise<boolean> {
  const [mine, there] = await Promise.all([handle.stat(), stat(path).catch(() => null)]);
  return there !== null && mine.ino === there.ino && mine.dev === there.dev;
}
