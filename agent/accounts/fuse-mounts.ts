import { fuseUserOf, isWithin, type Mount } from "../system/mounts.ts";

/**
 * Returns the FUSE mounts in a folder that the given users made themselves, without those whose unmounting would also change a mount of somebody
 * else. In the returned list, outer mounts stand before inner mounts. `removableFuse` reads only the kernel's list of mounts, because an access to a
 * FUSE mount may never end.
 */
export function removableFuse(mounts: readonly Mount[], folder: string, isTheirs: (uid: number) => boolean): Mount[] {
  const byId = new Map(mounts.map((mount) => [mount.id, mount]));
  const isOwn = (mount: Mount): boolean => {
    const user = fuseUserOf(mount);
    return user !== null && isTheirs(user);
  };
  const above = (mount: Mount): Set<string> => {
    const ids = new Set<string>();
    for (let at = byId.get(mount.parent); at !== undefined && !ids.has(at.id); at = byId.get(at.parent)) ids.add(at.id);
    return ids;
  };
  // A tenant may have a thousand mounts, so the mounts above each mount of another user are computed in advance, only once.
  const others = mounts.filter((mount) => !isOwn(mount)).map((mount) => ({ ...mount, above: above(mount) }));
  return mounts
    .filter((mount) => isOwn(mount) && isWithin(mount.path, folder))
    .filter((mount) => {
      const outer = above(mount);
      // A mount hides a FUSE mount if it contains the path of the FUSE mount and is not one of the mounts below which the FUSE mount was made.
      return others.every(
        (other) => !other.above.has(mount.id) && (!isWithin(mount.path, other.path) || outer.has(other.id)),
      );
    })
    .sort((one, other) => one.path.length - other.path.length);
}
