import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** The file with the SHA-256 of each other file of a backup, in the form that `sha256sum -c SHA256SUMS` reads. */
const SUMS = "SHA256SUMS";
const LINE = /^([0-9a-f]{64}) {2}(\S.*)$/;

async function sha256Of(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

const filesIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();

/** Writes the file `SHA256SUMS` last, and brings all files of the backup to the disk. */
export async function seal(folder: string): Promise<void> {
  const lines: string[] = [];
  for (const name of await filesIn(folder)) lines.push(`${await sha256Of(join(folder, name))}  ${name}\n`);
  const handle = await open(join(folder, SUMS), "wx", 0o600);
  await handle.writeFile(lines.join("")).finally(() => handle.close());
  for (const name of [...(await filesIn(folder)), ".", "tables", "secrets"]) await syncPath(join(folder, name));
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r").catch(() => null);
  await handle?.sync().finally(() => handle.close());
}

export class DamagedBackup extends Error {
  override readonly name = "DamagedBackup";
}

/** Throws a `DamagedBackup` unless the folder holds exactly the files of a whole backup, each with its content. */
export async function mustBeWhole(folder: string): Promise<void> {
  const text = await readFile(join(folder, SUMS), "utf8").catch(() => null);
  if (text === null)
    throw new DamagedBackup(
      `${folder} is no whole backup: it has no file ${SUMS}. Name a folder that \`backup\` made.`,
    );
  const expected = new Map<string, string>();
  for (const line of text.split("\n").filter((one) => one !== "")) {
    const [, sum = "", name = ""] = LINE.exec(line) ?? [];
    expected.set(name, sum);
  }
  const present = new Set(await filesIn(folder));
  present.delete(SUMS);
  const faults = [...present].filter((name) => !expected.has(name)).map((name) => `${name} is not in ${SUMS}`);
  for (const [name, sum] of expected) {
    if (!present.has(name)) faults.push(`${name} is missing`);
    else if ((await sha256Of(join(folder, name))) !== sum) faults.push(`${name} was changed`);
  }
  if (faults.length > 0)
    throw new DamagedBackup(
      `The backup ${folder} is damaged: ${faults.slice(0, 5).join(", ")}. Nothing was changed. Use another copy of the backup.`,
    );
}
