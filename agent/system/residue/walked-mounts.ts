import { isNetworkMount, isWithin, type Mount } from "../mounts.ts";
import { textOfPath } from "./found-files.ts";
import { Unreadable } from "./reading.ts";

/**
 * Folders in which containers and snaps keep files of users that the host does not know. The item `containers` of the residue snapshot reads the
 * state folders of container engines.
 */
const ENGINES = [
  ...[
    "docker",
    "containerd",
    "containers",
    "lxcfs",
    "lxd",
    "incus",
    "kubelet",
    "rancher",
    "enroot",
    "machines",
    "snapd",
  ].map((name) => `/var/lib/${name}`),
  ...["containerd", "docker", "containers", "crio", "k3s", "netns", "snapd"].map((name) => `/run/${name}`),
  ...["/snap", "/var/snap"],
];
/** Folders whose files the walk over the disks does not read. The kernel itself makes the files of /proc, /sys and /dev. */
const PRUNED: ReadonlySet<string> = new Set([...ENGINES, "/proc", "/sys", "/dev"]);
export const isPruned = (path: string): boolean => PRUNED.has(path);

/** Matches file systems whose files the kernel makes, and `autofs`, which only waits until somebody mounts a file system. */
const OF_KERNEL =
  /^(proc|sysfs|cgroup2?|devpts|devtmpfs|mqueue|hugetlbfs|securityfs|debugfs|tracefs|pstore|efivarfs|bpf|configfs|binfmt_misc|nsfs|fusectl|selinuxfs|smackfs|resctrl|xenfs|rpc_pipefs|nfsd|autofs)$/;
/** Matches file systems that nobody can change after they were made. */
const IMMUTABLE = /^(squashfs|erofs|iso9660|cramfs|romfs)$/;
/** Matches file systems without a block device of their own whose files need neither a server nor another process. */
const IN_KERNEL = /^(tmpfs|ramfs|rootfs|overlay|aufs|ecryptfs|btrfs|bcachefs|zfs)$/;
/** Matches file systems in which a folder may have another device number than its parent without a mount between them. */
const WITH_SUBVOLUMES = /^(btrfs|bcachefs|zfs)$/;

/** True if the kernel serves a file system from a block device, so that the file system's files are still there after a boot. */
const isOnDisk = ({ type, device }: Mount): boolean => WITH_SUBVOLUMES.test(type) || !device.startsWith("0:");

/** True if somebody mounted a disk read-only, although its file system can be written to. */
export const isReadOnlyDisk = (mount: Mount): boolean =>
  mount.isReadOnly && isOnDisk(mount) && !IMMUTABLE.test(mount.type);

/** A folder or mount at which the walk over the disks starts. */
export interface WalkStart {
  /** The mount at which the walk over the disks starts; null for the root folder of a host without a list of mounts. */
  readonly mount: Mount | null;
  /** The folder at which the walk over the disks starts, with each byte as one character; an empty text for the root folder. */
  readonly folder: string;
  readonly hasSubvolumes: boolean;
  /** True if the files of the mount are still there after a boot, so that the walk over the disks must have read them. */
  readonly isOnDisk: boolean;
}

export interface WalkPlan {
  readonly starts: readonly WalkStart[];
  /** All mount points of the host, which the walk over the disks skips wherever it comes to one, because an access to a mount may never end. */
  readonly points: ReadonlySet<string>;
}

/**
 * Chooses the mounts whose files the walk over the disks reads: each mount of a file system of the host that somebody can write to. The files of a
 * network file system are on its server, so the walk over the disks leaves them out. Throws if the agent cannot read the files of a local file system
 * of the host, because the tenant's files in it would stay unknown.
 */
export function planWalk(mounts: readonly Mount[]): WalkPlan {
  const local = mounts.filter((one) => one.path !== "/" && isSearched(one));
  const atPlace = placesOf(mounts);
  const visible = local.filter((one) => atPlace(one.path) === one);
  const root = atPlace("/") ?? null;
  for (const one of local) {
    const shows = (other: Mount): boolean => other.device === one.device && isWithin(one.from, other.from);
    if (isOnDisk(one) && !visible.includes(one) && ![...visible, ...(root === null ? [] : [root])].some(shows))
      throw unreadable(one, "lies below another mount", "Unmount the upper one");
  }
  const walked = visible.filter(
    (one, index) => !visible.some((other, at) => isShownBy(one, other, at < index, mounts)),
  );
  return {
    starts: [{ mount: root, folder: "" }, ...walked.map((mount) => ({ mount, folder: mount.path }))].map((start) => ({
      ...start,
      hasSubvolumes: WITH_SUBVOLUMES.test(start.mount?.type ?? ""),
      isOnDisk: start.mount !== null && isOnDisk(start.mount),
    })),
    points: new Set(mounts.map(({ path }) => path)),
  };
}

/**
 * True if the walk over the disks must read the files of a mount. Throws if the walk over the files of the disks cannot read a mount that it must
 * read.
 */
function isSearched(mount: Mount): boolean {
  const { type, source, path } = mount;
  const isOfKernel = OF_KERNEL.test(type) || ["/proc", "/sys"].some((folder) => isWithin(path, folder));
  if (isOfKernel || path === "/dev" || IMMUTABLE.test(type) || isReadOnlyDisk(mount)) return false;
  if (ENGINES.some((folder) => isWithin(path, folder))) return false;
  if (type === "fuseblk" || (type.startsWith("fuse") && /^\/dev\/(?!fuse$)/.test(source)))
    throw unreadable(mount, "is served by a process that may not answer", "Mount it by a driver of the kernel");
  if (isNetworkMount(mount)) return false;
  if (!isOnDisk(mount) && !IN_KERNEL.test(type))
    throw unreadable(mount, "is of a type that the agent does not know", "Unmount it, or mount it read-only");
  return true;
}

const unreadable = ({ type, source, path }: Mount, why: string, next: string): Unreadable =>
  new Unreadable(
    `The file system ${textOfPath(path)} (${type} ${textOfPath(source)}) ${why}, so its files are unknown. ${next}.`,
  );

/** True if a walk of the mount `other` also reads all files of the mount `one`, so that one walk is enough for both. */
function isShownBy(one: Mount, other: Mount, isEarlier: boolean, mounts: readonly Mount[]): boolean {
  if (one === other || one.device !== other.device || !isWithin(one.from, other.from)) return false;
  if (one.from === other.from && !isEarlier) return false;
  const isWhole = !mounts.some((inner) => inner !== other && isWithin(inner.path, other.path));
  return isWhole && ![...PRUNED].some((folder) => isWithin(folder, other.path));
}

/** Returns the function that finds the mount to which a path leads. If several mounts have one mount point, a path leads to the uppermost mount. */
function placesOf(mounts: readonly Mount[]): (path: string) => Mount | undefined {
  const ids = new Set(mounts.map(({ id }) => id));
  const places = new Map(mounts.map((one) => [`${ids.has(one.parent) ? one.parent : ""} ${one.path}`, one]));
  return (path) => {
    let here: Mount | undefined;
    const parts = path === "/" ? [] : path.slice(1).split("/");
    for (let length = 0; length <= parts.length; length += 1) {
      const prefix = `/${parts.slice(0, length).join("/")}`;
      for (let on = places.get(`${here?.id ?? ""} ${prefix}`); on !== undefined && on !== here; ) {
        here = on;
        on = places.get(`${here.id} ${prefix}`);
      }
    }
    return here;
  };
}

/** Throws if somebody unmounted or remounted a disk's file system while the agent walked over its files. */
export function checkStillMounted({ starts }: WalkPlan, now: readonly Mount[]): void {
  for (const { mount, isOnDisk } of starts)
    if (mount !== null && isOnDisk && !now.some(({ id, path }) => id === mount.id && path === mount.path))
      throw unreadable(mount, "was unmounted during the search", "Read the residue again");
}

/**
 * Throws if the walk over the disks has come to a disk that somebody mounted after the walk had begun. Services may mount file systems in memory at
 * any time; the item `mounts` of the residue snapshot names those that stay mounted.
 */
export function throwIfDisk(path: string, now: readonly Mount[]): void {
  const mount = now.findLast((one) => one.path === path);
  if (mount !== undefined && !isOnDisk(mount)) return;
  throw new Unreadable(`A disk was mounted at ${textOfPath(path)} during the search. Read the residue again.`);
}
