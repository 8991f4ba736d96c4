import { readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { isMissing } from "./files.ts";

/**
 * The bit of CAP_SYS_ADMIN in a set of capabilities. Container engines take the capability CAP_SYS_ADMIN from every container that is not privileged.
 */
const SYS_ADMIN = 1n << 21n;

/**
 * Tells whether a process runs in a container with the rights of the host's root: in a pid namespace of its own, but in the host's user namespace,
 * and without the limits that container engines set. Root in a privileged container can mount the host's disks. A container with a user namespace of
 * its own, for example one of rootless podman, does not have the rights of the host's root. `containerRights` does not report a process outside
 * containers, although it may have the rights of the host's root, because it is in the host's own pid namespace.
 */
export function containerRights(proc: string, pid: number): "privileged" | "none" | "unreadable" {
  try {
    const status = readFileSync(join(proc, String(pid), "status"), "utf8");
    const bounding = BigInt(`0x${/^CapBnd:\s*([0-9a-f]{1,32})$/m.exec(status)?.[1] ?? "0"}`);
    if ((bounding & SYS_ADMIN) === 0n) return "none";
    const isOfHost = (kind: string): boolean =>
      readlinkSync(join(proc, String(pid), "ns", kind)) === readlinkSync(join(proc, "1/ns", kind));
    return isOfHost("user") && !isOfHost("pid") ? "privileged" : "none";
  } catch (error) {
    if (isMissing(error) || (error as NodeJS.ErrnoException).code === "ESRCH") return "none";
    return "unreadable";
  }
}
