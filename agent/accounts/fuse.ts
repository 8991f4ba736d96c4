import { fuseUserOf, type Mount } from "../system/mounts.ts";
import type { HostProcess } from "../system/processes.ts";
import type { System } from "../system/system.ts";
import { removableFuse } from "./fuse-mounts.ts";

const TOOL_TIMEOUT_MS = 20_000;
/** After this time `fuseRelease` starts no further umount. Its next call continues. */
const RELEASE_MS = 30_000;
/** After this time `unmountFuse` starts no further umount, because a tenant may have made a thousand mounts whose servers hang. */
const UNMOUNT_MS = 10 * 60_000;
const NO_FUSECTL =
  "The file system fusectl is not mounted at /sys/fs/fuse/connections, so FUSE connections could only be aborted by umount --force.";

/**
 * Returns a function that lets processes end that wait for a FUSE file system of one of their own users, for example a FUSE server that waits for its
 * own mount. The function returns what limited it, or null.
 */
export function fuseRelease(system: System): (isTheirs: (uid: number) => boolean) => Promise<string | null> {
  const forced = new Set<string>();
  return async (isTheirs) => {
    if (system.abortFuse(isTheirs) !== null) return null;
    const deadline = performance.now() + RELEASE_MS;
    for (const mount of await system.mounts()) {
      const user = fuseUserOf(mount);
      if (user === null || !isTheirs(user) || forced.has(mount.id)) continue;
      if (performance.now() > deadline) break;
      forced.add(mount.id);
      // Without `--lazy` the mount may stay, but its connection is aborted.
      await unmount(system, mount, ["--force"]);
    }
    return NO_FUSECTL;
  };
}

/** Releases only users of whom a process survived SIGKILL, so that other users' FUSE file systems stay. */
export function releaseOfSurvivors(
  system: System,
  isTheirs: (uid: number) => boolean,
): (survivors: readonly HostProcess[]) => Promise<string | null> {
  const release = fuseRelease(system);
  return (survivors) => release((uid) => isTheirs(uid) && survivors.some(({ uids }) => uids.includes(uid)));
}

/**
 * Unmounts the FUSE file systems that users mounted, also outside their homes, after their processes have ended. A mount of the site stays. Returns
 * how many FUSE mounts were there, and the reasons of failures.
 */
export async function unmountFuse(
  system: System,
  isTheirs: (uid: number) => boolean,
  signal: AbortSignal,
): Promise<{ found: number; faults: string[] }> {
  const tried = new Set<string>();
  const faults: string[] = [];
  const deadline = performance.now() + UNMOUNT_MS;
  for (;;) {
    signal.throwIfAborted();
    if (performance.now() > deadline)
      return { found: tried.size, faults: [...faults, "The time for the unmounting is over."] };
    const mount = removableFuse(await system.mounts(), "/", isTheirs).find(({ id }) => !tried.has(id));
    if (mount === undefined) return { found: tried.size, faults };
    tried.add(mount.id);
    // With `--force` the kernel aborts the connection first, and with `--lazy` inner mounts of the same users go with the outer mount.
    const fault = await unmount(system, mount, ["--force", "--lazy"]);
    if (fault !== null) faults.push(fault);
  }
}

/**
 * Unmounts a file system without a look at it, because its server may never answer. The path of the mount goes through `xargs`, because the path need
 * not be UTF-8. Returns the reason of a failure, or null.
 */
async function unmount(system: System, { path }: Mount, options: readonly string[]): Promise<string | null> {
  const bytes = Buffer.from(`${path}\0`, "latin1");
  const args = ["-0", "umount", "--internal-only", "--no-canonicalize", ...options, "--"];
  const ran = await system.attempt("xargs", args, {
    timeoutMs: TOOL_TIMEOUT_MS,
    input: bytes,
  });
  if (ran.kind === "ended") return ran.exitCode === 0 ? null : ran.stderr.trim().slice(-400);
  return ran.kind === "missing" ? ran.message : `umount did not end within ${TOOL_TIMEOUT_MS / 1000} s.`;
}
