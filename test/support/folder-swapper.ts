/**
 * A hostile process that attacks the emptying of a folder. In the folder that an agent empties, the hostile process creates subfolders as fast as it
 * can. The hostile process replaces the subfolders by symbolic links to a victim folder, and moves the subfolders away and back. The arguments of the
 * hostile process are the attacked folder, the victim folder, and a folder for the moved subfolders. The hostile process prints the number of its
 * attacks on the folder.
 */
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder = "", victim = "", aside = ""] = process.argv.slice(2);

/** Each operation of the hostile process may fail, because the agent deletes the attacked files at the same time. */
function attempt(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}

for (let swaps = 1; ; swaps += 1) {
  const name = join(folder, `d${swaps % 7}`);
  attempt(() => mkdirSync(join(name, "inner/deep"), { recursive: true }));
  attempt(() => writeFileSync(join(name, "inner/file1"), ""));
  attempt(() => renameSync(join(name, "inner"), join(aside, `inner${swaps % 3}`)));
  attempt(() => symlinkSync(join(victim, "inner"), join(name, "inner")));
  attempt(() => renameSync(name, join(aside, "d")));
  attempt(() => symlinkSync(victim, name));
  attempt(() => unlinkSync(name));
  attempt(() => renameSync(join(aside, "d"), name));
  if (swaps % 50 === 0) {
    attempt(() => rmSync(aside, { recursive: true, force: true }));
    attempt(() => mkdirSync(aside));
    process.stdout.write(`${swaps}\n`);
  }
}
