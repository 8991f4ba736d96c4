import { dirname } from "node:path";
import type { System } from "../system/system.ts";
import { type AclLine, aclOfMode, mayUse, parseAcl, type Right, type User } from "./posix-acl.ts";

const TOOL_TIMEOUT_MS = 30_000;

/**
 * Files that give the rights of root to a user who may read or write them; `right` says which of the two rights is needed. A user who may write to
 * the socket of a container engine can start a container that mounts the host's file system. A user who may read the configuration of a Kubernetes
 * administrator or kubelet can start a pod that mounts the host's file system.
 */
const DOORS: readonly { readonly path: string; readonly right: Right }[] = [
  ...[
    "/run/docker.sock",
    "/run/cri-dockerd.sock",
    "/run/containerd/containerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
    "/run/crio/crio.sock",
    "/run/podman/podman.sock",
    "/run/buildkit/buildkitd.sock",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
    "/var/lib/incus/unix.socket",
    "/etc/kubernetes/manifests",
  ].map((path) => ({ path, right: "write" as const })),
  ...[
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/super-admin.conf",
    "/etc/rancher/k3s/k3s.yaml",
    "/etc/rancher/rke2/rke2.yaml",
    "/var/snap/microk8s/current/credentials/client.config",
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
  ].map((path) => ({ path, right: "read" as const })),
];

/**
 * Returns the sockets and Kubernetes files that the user may use by mode, group or access control list, for example `socket /run/docker.sock`. A
 * socket or file whose rights the agent cannot read counts as one that the user may use. `waysByEngines` does not check rights by polkit, engines
 * that listen on TCP, and remote engines in the user's own configuration.
 */
export async function waysByEngines(system: System, user: User): Promise<string[]> {
  const ways: string[] = [];
  for (const { path, right } of DOORS) {
    const found = await use(system, path, right, user);
    if (found !== "no") ways.push(`${found === "unreadable" ? "unreadable " : ""}${kindOf(path)} ${path}`);
  }
  return ways;
}

const kindOf = (path: string): string => (/[.]sock(et)?$/.test(path) ? "socket" : "file");

/** Whether the user has the right to a file, and the right to enter each folder above the file. */
async function use(system: System, path: string, right: Right, user: User): Promise<"yes" | "no" | "unreadable"> {
  if ((await system.entry(path)) === null) return "no";
  try {
    const target = await resolved(system, path);
    const steps = [...foldersOf(target), target];
    const marked = await withAcl(system, steps);
    for (const step of steps) {
      const entry = await system.entry(step);
      if (entry === null) return "no";
      const acl = marked.has(step) ? await readAcl(system, step) : aclOfMode(entry.mode);
      if (!mayUse(acl, entry, user, step === target ? right : "execute")) return "no";
    }
    return "yes";
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    // If the agent cannot check a user's rights to a file, the caller of `use` reports the file as a possible way to get the rights of root.
    return "unreadable";
  }
}

/** Returns the path without symbolic links, for example of a docker.sock that leads to the socket of podman. */
async function resolved(system: System, path: string): Promise<string> {
  const { exitCode, stdout, stderr } = await system.run("readlink", ["-f", "--", path], TOOL_TIMEOUT_MS);
  if (exitCode !== 0 || !stdout.startsWith("/")) throw new Error(`readlink could not resolve ${path}: ${stderr}`);
  return stdout.trim();
}

/** Returns the folders above a path, outermost first, without the root folder, which everybody may enter. */
const foldersOf = (path: string): string[] => {
  const above = dirname(path);
  return above === "/" ? [] : [...foldersOf(above), above];
};

/** Returns the paths that have an access control list besides their mode, which `ls` marks by a plus sign. */
async function withAcl(system: System, paths: readonly string[]): Promise<ReadonlySet<string>> {
  const { exitCode, stdout, stderr } = await system.run("ls", ["-ldn", "--", ...paths], TOOL_TIMEOUT_MS);
  const found = stdout.split("\n").map((line) => /^[a-z-]{10}([+.]?) .* (\/[^ ]+)$/i.exec(line));
  if (exitCode !== 0 || found.filter((one) => one !== null).length !== paths.length)
    throw new Error(`ls could not list ${paths.join(", ")}: ${stderr}`);
  return new Set(found.flatMap((one) => (one?.[1] === "+" ? (one[2] ?? []) : [])));
}

async function readAcl(system: System, path: string): Promise<readonly AclLine[]> {
  const args = ["--omit-header", "--numeric", "--absolute-names", "--", path];
  const { exitCode, stdout, stderr } = await system.run("getfacl", args, TOOL_TIMEOUT_MS);
  const acl = exitCode === 0 ? parseAcl(stdout) : null;
  if (acl === null) throw new Error(`getfacl could not read the access control list of ${path}: ${stderr}`);
  return acl;
}
