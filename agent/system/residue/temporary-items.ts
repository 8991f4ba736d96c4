import { join } from "node:path";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { readHomes } from "./accounts.ts";
import { withoutRandomParts } from "./entry-name.ts";
import { foreignMountOf, ownMounts } from "./foreign-mounts.ts";
import { namesIn, presences, type Reading, readText, settled } from "./reading.ts";

/** Matches temporary files that services make at each start, and Kerberos tickets, which belong to the item `credentials`. */
const OF_SYSTEM = /^([.](X11|ICE|XIM|font|Test)-unix|krb5cc_.*|snap-private-tmp)$/;

export function readTemporaryFiles(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const names: string[] = [];
    // The folder /run/user/0 exists while root is logged in, so it does not count as residue of a tenant.
    for (const folder of ["/tmp", "/var/tmp", "/run/user"])
      for (const name of await namesIn(reading, folder))
        if (!OF_SYSTEM.test(name) && !(folder === "/run/user" && name === "0"))
          names.push(`${folder}/${withoutRandomParts(name)}`);
    return presences(reading, names);
  });
}

/** Matches files that the tools for crash dumps need for their own work. */
const OF_KDUMP = /^(kdump_lock|kexec_cmd|_.*[.]lock)$/;

export async function readCrashDumps(reading: Reading): Promise<ResidueEntry[]> {
  const names: string[] = [];
  for (const folder of [
    "/var/lib/systemd/coredump",
    "/var/crash",
    "/var/lib/apport/coredump",
    "/sys/fs/pstore",
    "/var/lib/systemd/pstore",
  ])
    for (const name of await namesIn(reading, folder)) if (!OF_KDUMP.test(name)) names.push(`${folder}/${name}`);
  return presences(reading, names);
}

/**
 * Matches systemd units of logins and background commands. `readRuntimeUnits` leaves out the units of logins, because other items of the residue
 * snapshot list the processes that run in them.
 */
const OF_LOGINS =
  /^(session-.*[.]scope|user-0[.]slice.*|user@0[.]service.*|user-runtime-dir@0[.]service.*|run-.*|muster-.*)$/;

export function readRuntimeUnits(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const names: string[] = [];
    for (const folder of ["/run/systemd/system", "/run/systemd/transient", "/run/systemd/user"])
      for (const name of await namesIn(reading, folder)) if (!OF_LOGINS.test(name)) names.push(`${folder}/${name}`);
    return presences(reading, names);
  });
}

/**
 * State folders of engines for containers and virtual machines. The residue snapshot lists each name in a state folder of a container or virtual
 * machine engine, for example a container, an image or a volume.
 */
const STATE_FOLDERS: readonly [folder: string, word: string][] = [
  ["/var/lib/docker/image/overlay2/imagedb/content/sha256", "docker image"],
  ["/var/lib/docker/volumes", "docker volume"],
  ["/var/lib/docker/network/files", "docker network"],
  ["/var/lib/docker/buildkit/executor", "docker build"],
  ["/run/containerd/io.containerd.runtime.v2.task", "containerd namespace"],
  ["/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256", "containerd content"],
  ["/var/lib/containers/storage/overlay-containers", "podman container"],
  ["/var/lib/containers/storage/overlay-images", "podman image"],
  ["/var/lib/containers/storage/volumes", "podman volume"],
  ["/var/lib/enroot", "enroot"],
  ["/var/lib/rancher", "k3s"],
  ["/etc/rancher", "k3s configuration"],
  ["/var/lib/kubelet/pods", "pod"],
  ["/var/snap/lxd/common/lxd/containers", "lxd container"],
  ["/var/snap/lxd/common/lxd/virtual-machines", "lxd machine"],
  ["/var/lib/incus/instances", "incus instance"],
  ["/var/lib/lxc", "lxc container"],
  ["/var/lib/libvirt/images", "disk of a virtual machine"],
  ["/etc/libvirt/qemu", "virtual machine"],
  ["/var/lib/machines", "machine"],
  ["/var/spool/slurmd", "slurm job"],
];
/** Matches files that engines for containers need for their own work. */
const OF_ENGINE =
  /^(metadata[.]db|backingFsBlockDev|local-kv[.]db|.*[.]lock|networks|autostart|cred_state.*|hwloc_topo_whole[.]xml|conf-cache|[.]last|root)$/;
/** Folders in a home in which engines for containers without root keep their state. */
const IN_HOMES: readonly [folder: string, word: string][] = [
  [".local/share/docker", "docker"],
  [".local/share/containers/storage", "podman"],
  [".local/share/enroot", "enroot"],
  [".local/share/lxc", "lxc"],
];

export async function readContainers(reading: Reading): Promise<ResidueEntry[]> {
  const names = await dockerContainers(reading);
  for (const [folder, word] of STATE_FOLDERS)
    for (const name of await namesIn(reading, folder)) if (!OF_ENGINE.test(name)) names.push(`${word} ${name}`);
  const mounts = await ownMounts(reading);
  for (const home of await readHomes(reading))
    if (foreignMountOf(mounts, home) === null)
      for (const [folder, word] of IN_HOMES)
        if ((await namesIn(reading, `${home}/${folder}`)).length > 0) names.push(`${word} in ${home}`);
  return presences(reading, names);
}

/** Names Docker's containers by name and image, because a container that is created anew gets another id. */
async function dockerContainers(reading: Reading): Promise<string[]> {
  const folder = join(reading.root, "var/lib/docker/containers");
  const names: string[] = [];
  for (const id of await namesIn(reading, "/var/lib/docker/containers")) {
    const text = await readText(join(folder, id, "config.v2.json"));
    names.push(text === null ? `docker container ${id}` : nameOfContainer(id, text));
  }
  return names;
}

function nameOfContainer(id: string, text: string): string {
  try {
    const { Name, Config } = JSON.parse(text) as { Name?: unknown; Config?: { Image?: unknown } };
    return `docker container ${String(Name)} of ${String(Config?.Image)}`;
  } catch {
    // Even a damaged configuration file of a Docker container shows that the container exists.
    return `docker container ${id}`;
  }
}
