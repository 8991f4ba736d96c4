import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const CONSOLE = fileURLToPath(new URL("./", import.meta.url));
const LOCKFILE = fileURLToPath(new URL("../../package-lock.json", import.meta.url));
const NOT_BUILT = /([.]test[.]ts|[.]md|tsconfig[.]json)$/;

/** Returns a hash that names the present sources of the console: equal sources and an equal lockfile give equal names. */
export async function sourceVersion(): Promise<string> {
  const hash = createHash("sha256").update(process.version);
  for (const file of [...(await sources("app")), ...(await sources("build")), join(CONSOLE, "built-form.ts"), LOCKFILE])
    hash.update(`\0${relative(CONSOLE, file)}\0`).update(await readFile(file));
  return hash.digest("hex").slice(0, 32);
}

async function sources(folder: string): Promise<string[]> {
  const entries = await readdir(join(CONSOLE, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !NOT_BUILT.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
