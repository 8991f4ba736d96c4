import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A new folder that every user may enter. A hub run by root keeps its embedded database in it under another user. */
export function newHubFolder(prefix: string, parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, prefix));
  chmodSync(folder, 0o711);
  return folder;
}

/** Only a path of this form is removed: a hub that was killed while it wrote the path may have left half of it. */
const DATABASE_OUTSIDE = /^[/]var[/]lib[/]muster[/]postgres-[0-9a-f-]{36}$/;

/** The folders outside `folder` in which its hubs keep their databases. */
export const databasesOutside = (folder: string): string[] =>
  globSync("**/postgres/home", { cwd: folder })
    .map((pointer) => readFileSync(join(folder, pointer), "utf8"))
    .filter((home) => DATABASE_OUTSIDE.test(home));

/** Removes a folder, and the databases of its hubs with it. */
export function removeHubState(folder: string): void {
  for (const path of [...databasesOutside(folder), folder])
    rmSync(path, { recursive: true, force: true, maxRetries: 10 });
}
