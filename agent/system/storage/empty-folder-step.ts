import { closeSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { SYSTEM_FOLDERS } from "../../../shared/scratch-path.ts";
import type { WorkRun } from "../workers/define-work.ts";
import { kernelBootId } from "../workers/processes.ts";
import { clearAttributesOn } from "./attributes.ts";
import { codeOf, type OpenFolder, openFolderBelow } from "./descriptors.ts";
import { emptyFolder, type Reach } from "./empty-folder.ts";
import type { FolderUse } from "./kept.ts";
import { listeningSockets, newlyDeleted, openFilesBelow } from "./open-files.ts";
import type { Removed } from "./removal.ts";
import { NOT_MOUNTED, type StepEnd } from "./works.ts";

export interface EmptyFolderInput {
  readonly path: string;
  readonly use: FolderUse;
  readonly must_be_mount: boolean;
}

/** The cleaning step counts the removed files, the files that are left, and the removed files that a process still uses. */
export async function emptyFolderStep(
  { path, use, must_be_mount }: EmptyFolderInput,
  run: WorkRun,
  reach: Reach,
): Promise<StepEnd> {
  const opened = openTop(run.root, path, must_be_mount);
  if ("outcome" in opened) return opened;
  const began = performance.now();
  try {
    const whole = join(run.root, path);
    const before = openFilesBelow(whole);
    const removed = await emptyFolder(opened, {
      use,
      path: whole,
      bootId: kernelBootId().replaceAll("-", ""),
      listening: listeningSockets(readFileSync("/proc/net/unix", "latin1")),
      clearAttributes: clearAttributesOn(run.root),
      reach,
      look: ({ files, folders, bytes }) => {
        run.throwIfStopped();
        run.progress({ step: path.slice(0, 64), done: files + folders, bytes });
      },
    });
    const after = openFilesBelow(whole);
    const inUse = newlyDeleted(before.files, after.files);
    const pids = [...new Set(inUse.map(({ pid }) => pid))];
    const evidence = {
      ...countsOf(removed),
      device: String(opened.device),
      open_files: inUse.length,
      unreadable_processes: after.unreadable,
      seconds: Math.round((performance.now() - began) / 100) / 10,
    };
    const faults = faultsOf(removed, inUse.length, pids, after.unreadable);
    return faults.length === 0
      ? { outcome: "ok", message: `The folder is empty: ${removed.files} files were removed.`, evidence }
      : { outcome: "failed", message: faults.join(" "), evidence };
  } finally {
    closeSync(opened.fd);
  }
}

function openTop(root: string, path: string, mustBeMount: boolean): OpenFolder | StepEnd {
  const failed = (message: string): StepEnd => ({ outcome: "failed", message, evidence: {} });
  const unmounted = (message: string): StepEnd => ({ ...failed(message), evidence: { reason: NOT_MOUNTED } });
  let top: OpenFolder;
  try {
    top = openFolderBelow(root, path);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" && mustBeMount) return unmounted("There is no such folder, so the data disk is not mounted.");
    if (code === "ENOENT")
      return { outcome: "skipped", message: "There is no such folder on this host.", evidence: {} };
    if (code === "ELOOP" || code === "ENOTDIR")
      return failed("A part of the path is no folder, or is a symbolic link, which is not followed.");
    return failed(`The folder could not be opened: ${code}.`);
  }
  const refusal = refusalOf(root, top);
  const isMissing = refusal === null && mustBeMount && !isMountPoint(root, path, top);
  if (refusal === null && !isMissing) return top;
  closeSync(top.fd);
  return refusal === null ? unmounted("No file system is mounted here, so the data disk is missing.") : failed(refusal);
}

/**
 * Returns why a cleaning step must not empty a folder, or null if it may. The order may name a system folder by another path, so `refusalOf` compares
 * folders by device and inode number.
 */
function refusalOf(root: string, top: OpenFolder): string | null {
  for (const name of ["", ...SYSTEM_FOLDERS.filter((folder) => folder !== "tmp"), "var/lib"]) {
    const system = folderIfPresent(root, name);
    if (system !== null && system.device === top.device && system.inode === top.inode)
      return `The folder is /${name} by another path, so it is not emptied.`;
  }
  return null;
}

function isMountPoint(root: string, path: string, top: OpenFolder): boolean {
  const parent = folderIfPresent(root, dirname(path));
  return parent !== null && parent.mount !== top.mount;
}

function folderIfPresent(root: string, path: string): OpenFolder | null {
  try {
    const folder = openFolderBelow(root, path);
    closeSync(folder.fd);
    return folder;
  } catch (error) {
    // The folders /bin and /lib are symbolic links on most hosts, and the links' targets count as parts of /usr.
    if (["ENOENT", "ELOOP", "ENOTDIR"].includes(codeOf(error))) return null;
    throw error;
  }
}

const countsOf = (removed: Removed) => ({
  files: removed.files,
  folders: removed.folders,
  bytes: removed.bytes,
  hard_links: removed.hardLinks,
  kept: removed.kept,
  attributes_cleared: removed.cleared,
  mounts: removed.mounts,
  failures: removed.failures,
});

function faultsOf(removed: Removed, inUse: number, pids: readonly number[], unreadable: number): string[] {
  const faults: string[] = [];
  if (removed.failures > 0) faults.push(`${removed.failures} things are left: ${removed.named.join("; ")}.`);
  if (inUse > 0)
    faults.push(
      `${inUse} removed files are still in use, so their content stays on the disk until processes ${pids.slice(0, 10).join(", ")} end.`,
    );
  if (unreadable > 0) faults.push(`Linux did not tell which files ${unreadable} processes use.`);
  return faults;
}
