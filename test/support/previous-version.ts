/**
 * A checkout of the version of Muster before the newest database migration, which the git history of this checkout provides. The checkout uses the
 * installed packages of this checkout, so the previous version must have asked for the same versions of the packages.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";

const REPOSITORY = new URL("../..", import.meta.url).pathname;
const MIGRATIONS = "hub/db/migrations";
/** The folders and files that a hub started from source needs. */
const PARTS = ["hub", "shared", "agent", "cloud-init", "packaging", "package.json", "tsconfig.json"];

export type PreviousVersion =
  | { readonly commit: string; readonly missing?: undefined }
  | { readonly commit?: undefined; readonly missing: string };

/** Finds the previous version in the git history. `missing` says why a test cannot use one. */
export async function findPreviousVersion(): Promise<PreviousVersion> {
  const newest = readdirSync(join(REPOSITORY, MIGRATIONS))
    .filter((name) => name.endsWith(".sql"))
    .toSorted()
    .at(-1);
  const added = await git(["log", "--diff-filter=A", "--format=%H", "-1", "--", `${MIGRATIONS}/${newest}`]);
  if (added === null || added === "") return { missing: `no git history has the commit that added ${newest}` };
  const commit = await git(["rev-parse", "--verify", "--quiet", `${added}^`]);
  if (commit === null) return { missing: `the git history ends with ${added}` };
  const then = await git(["show", `${commit}:package.json`]);
  if (then === null || packagesOf(then) !== packagesOf(readFileSync(join(REPOSITORY, "package.json"), "utf8")))
    return { missing: `${commit} asks for other packages than this version` };
  return { commit };
}

const packagesOf = (packageJson: string): string => JSON.stringify(JSON.parse(packageJson).dependencies);

/** Runs git on this checkout; null if git refuses or is not installed. */
async function git(args: readonly string[]): Promise<string | null> {
  const { failed, stdout } = await execa("git", ["-C", REPOSITORY, ...args], { reject: false });
  return failed ? null : stdout.trim();
}

/** Writes the version of a commit into the folder, with a link to the installed packages. */
export async function checkOut(commit: string, folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const archive = execa("git", ["-C", REPOSITORY, "archive", commit, "--", ...PARTS], { encoding: "buffer" });
  await archive.pipe("tar", ["-x", "-C", folder]);
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
}
