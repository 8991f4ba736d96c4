import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A new folder that any user may pass through, so that the embedded database of a root run, which is another user's, lies in it too. */
export function newHubFolder(prefix: string, parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, prefix));
  chmodSync(folder, 0o711);
  return folder;
}

/** Only what is such a place is believed: a hub that was killed while it wrote where its database is may have left half a path, or none. */
const DATABASE_OUTSIDE = /^[/]var[/]lib[/]muster[/]postgres-[0-9a-f-]{36}$/;

/** Where the hubs that have their state below the folder keep their databases instead. */
export const databasesOutside = (folder: string): string[] =>
  globSync("**/postgres/home", { cwd: folder })
    .map((pointer) => readFileSync(join(folder, pointer), "utf8"))
    .filter((home) => DATABASE_OUTSIDE.test(home));

/** Removes a folder, and the databases of its hubs with it. */
export function removeHubState(folder: string): void {
  for (const path of [...databasesOutside(folder), folder])
    rmSync(path, { recursive: true, force: true, maxRetries: 10 });
}
