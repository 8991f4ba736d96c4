import { chmod, cp, lchown, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { realParent } from "./confined.ts";
import { isPresent } from "./files.ts";

const SKELETON = "etc/skel";

/** The temporary path of a new home folder, until the folder is complete and gets its final name. */
export const unfinishedHome = (home: string): string => join(dirname(home), `.muster-home-${basename(home)}`);

/**
 * Makes a user's home folder, which other users cannot read, with the files of /etc/skel. The agent renames a complete home folder to its final name,
 * so that a killed agent leaves no half-made home. Only root can change the folder that contains the home folders.
 */
export async function makeHome(root: string, path: string, uid: number, gid: number): Promise<void> {
  const parent = await realParent(root, path);
  if (parent === null) throw new Error(`There is no folder for ${path}.`);
  const staging = join(parent, basename(unfinishedHome(path)));
  await rm(staging, { recursive: true, force: true });
  await mkdir(staging, { mode: 0o700 });
  const skeleton = join(root, SKELETON);
  if (await isPresent(skeleton))
    await cp(skeleton, staging, { recursive: true, dereference: false, verbatimSymlinks: true });
  for (const name of await readdir(staging, { recursive: true })) await lchown(join(staging, name), uid, gid);
  await chmod(staging, 0o700);
  await lchown(staging, uid, gid);
  await rename(staging, join(parent, basename(path)));
  const handle = await open(parent, "r");
  await handle.sync().finally(() => handle.close());
}
