import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Creates a folder that every user may enter. If root runs a hub, the hub's embedded database runs as a user other than root, who needs access to the
 * hub's folder.
 */
export function newHubFolder(prefix: string, parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, prefix));
  chmodSync(folder, 0o711);
  return folder;
}

/**
 * Matches the path of an embedded database outside the hub's folder. A killed hub may have written only half of the database's path, so the clean-up
 * removes only a path that matches `DATABASE_OUTSIDE`.
 */
const DATABASE_OUTSIDE = /^[/]var[/]lib[/]muster[/]postgres-[0-9a-f-]{36}$/;

/** Returns the folders outside `folder` in which the hubs of `folder` keep their databases. */
export const databasesOutside = (folder: string): string[] =>
  globSync("**/postgres/home", { cwd: folder })
    .map((pointer) => readFileSync(join(folder, pointer), "utf8"))
    .filter((home) => DATABASE_OUTSIDE.test(home));

/** Removes a folder with the state of hubs, and the databases that these hubs keep elsewhere. */
export function removeHubState(folder: string): void {
  for (const path of [...databasesOutside(folder), folder])
    rmSync(path, { recursive: true, force: true, maxRetries: 10 });
}
