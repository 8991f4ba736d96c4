import { fuseUserOf, type Mount } from "../system/mounts.ts";
import type { HostProcess } from "../system/processes.ts";
import type { System } from "../system/system.ts";
import { removableFuse } from "./fuse-mounts.ts";

const TOOL_TIMEOUT_MS = 20_000;
/**
 * The time after which one call of the function that `fuseRelease` returns starts no further umount. The next call of the function that `fuseRelease`
 * returns continues with the FUSE mounts on which it has not tried an umount.
 */
const RELEASE_MS = 30_000;
/** The time after which one call of `unmountFuse` starts no further umount, because a tenant may have made a thousand mounts whose servers hang. */
const UNMOUNT_MS = 10 * 60_000;
const NO_FUSECTL =
  "The file system fusectl is not mounted at /sys/fs/fuse/connections, so FUSE connections could only be aborted by umount --force.";

/**
 * Returns a function that aborts the FUSE connections of given users, so that processes which wait for these users' FUSE file systems can end; for
 * example, a FUSE server may wait for its own mount. The function that `fuseRelease` returns gives a message if the file system fusectl is not
 * mounted, and null otherwise.
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
      // `umount --force` without `--lazy` may leave the mount, but aborts its FUSE connection.
      await unmount(system, mount, ["--force"]);
    }
    return NO_FUSECTL;
  };
}

/** Aborts FUSE connections only of users of whom a process survived SIGKILL, so that other users' FUSE file systems stay mounted. */
export function releaseOfSurvivors(
  system: System,
  isTheirs: (uid: number) => boolean,
): (survivors: readonly HostProcess[]) => Promise<string | null> {
  const release = fuseRelease(system);
  return (survivors) => release((uid) => isTheirs(uid) && survivors.some(({ uids }) => uids.includes(uid)));
}

/**
 * Unmounts the FUSE file systems that users mounted, also outside their homes, after their processes have ended. `unmountFuse` leaves the mounts of
 * the site. Returns how many FUSE mounts it found, and the reasons of failed unmounts.
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
    // With `--force`, umount first aborts the FUSE connection, and with `--lazy` it also unmounts the inner mounts of the same users.
    const fault = await unmount(system, mount, ["--force", "--lazy"]);
    if (fault !== null) faults.push(fault);
  }
}

/**
 * Unmounts a file system without accessing it, because its server may never answer. `unmount` passes the path of the mount through `xargs`, because
 * the path need not be UTF-8. Returns why the unmount failed, or null if it succeeded.
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
