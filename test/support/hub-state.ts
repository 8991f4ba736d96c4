import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { memoryFolder } from "./memory-folder.ts";

/**
 * Creates a folder that every user may enter. If root runs a hub, the hub's database runs as another user, who must be able to enter the hub's
 * folder.
 */
export function newHubFolder(prefix: string, parent = memoryFolder()): string {
  const folder = mkdtempSync(join(parent, prefix));
  chmodSync(folder, 0o711);
  return folder;
}

/**
 * Matches the path of an embedded database outside the hub's folder, so that the clean-up removes no other path. A killed hub may have stored only
 * half of the path of its database.
 */
const DATABASE_OUTSIDE = /^[/]var[/]lib[/]muster[/]postgres-[0-9a-f-]{36}$/;

export const databasesOutside = (folder: string): string[] =>
  globSync("**/postgres/home", { cwd: folder })
    .map((pointer) => readFileSync(join(folder, pointer), "utf8"))
    .filter((home) => DATABASE_OUTSIDE.test(home));

export function removeHubState(folder: string): void {
  for (const path of [...databasesOutside(folder), folder])
    rmSync(path, { recursive: true, force: true, maxRetries: 10 });
}
