import { spawnSync } from "node:child_process";

/** The longest duration, in milliseconds, of a script in a mount namespace; a hanging mount must not hang the test. */
const SCRIPT_TIMEOUT_MS = 600_000;

/** True if this process may mount file systems in a mount namespace of its own. */
export const mayMount: boolean =
  spawnSync("unshare", ["-m", "sh", "-c", "mount -t tmpfs none /mnt"], { stdio: "ignore" }).status === 0;

export const mayMountLoop: boolean =
  mayMount &&
  spawnSync(
    "unshare",
    [
      "-m",
      "sh",
      "-ec",
      "mount -t tmpfs none /mnt; truncate -s 8M /mnt/i; mkfs.ext4 -q /mnt/i; mkdir /mnt/d; mount -o loop /mnt/i /mnt/d; umount /mnt/d",
    ],
    { stdio: "ignore" },
  ).status === 0;

/**
 * Runs a shell script in a new mount namespace. The Linux kernel removes the mounts of a script in its own mount namespace when the script has ended.
 */
export function inMountNamespace(script: string, ...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync("unshare", ["-m", "sh", "-ec", script, ...args], {
    encoding: "utf8",
    timeout: SCRIPT_TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  if (status !== 0) throw new Error(`The script ended with ${status}: ${stderr}`, { cause: error });
  return stdout;
}
