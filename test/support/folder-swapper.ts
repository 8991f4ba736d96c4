/**
 * A hostile process: it makes folders in a folder that is being emptied, replaces them by symbolic links to a victim, and moves them away and back, as
 * fast as it can. Arguments: the folder, the victim, a folder aside. Prints how often it has done so.
 */
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder = "", victim = "", aside = ""] = process.argv.slice(2);

/** The remover works against this process, so each operation may fail. */
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
