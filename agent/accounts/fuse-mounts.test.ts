import { describe, expect, it } from "vitest";
import { parseMounts } from "../system/mounts.ts";
import { removableFuse } from "./fuse-mounts.ts";

const ROOT = "1 0 8:1 / / rw - ext4 /dev/sda1 rw";
const fuse = (id: number, parent: number, path: string, user = 1000, type = "fuse.sshfs"): string =>
  `${id} ${parent} 0:${id} / ${path} rw,nosuid,nodev - ${type} x rw,user_id=${user},group_id=${user}`;
const nfs = (id: number, parent: number, path: string): string => `${id} ${parent} 0:${id} / ${path} rw - nfs4 s:/x rw`;

describe("the FUSE mounts of a user that may be unmounted", () => {
  it.each<[string, string[], string[]]>([
    ["a mount of the user", [fuse(2, 1, "/home/ada/m")], ["2"]],
    ["the home itself", [fuse(2, 1, "/home/ada")], ["2"]],
    [
      "a mount in a mount of the user, the outer one first",
      [fuse(3, 2, "/home/ada/m/n"), fuse(2, 1, "/home/ada/m")],
      ["2", "3"],
    ],
    ["a mount of the user on a mount of the site", [nfs(2, 1, "/home/ada/m"), fuse(3, 2, "/home/ada/m")], ["3"]],
    ["not a mount of the site", [nfs(2, 1, "/home/ada/m")], []],
    ["not a FUSE mount of root", [fuse(2, 1, "/home/ada/m", 0)], []],
    ["not a FUSE mount of another user", [fuse(2, 1, "/home/ada/m", 1001)], []],
    ["not a disk that a process serves", [fuse(2, 1, "/home/ada/m", 1000, "fuseblk")], []],
    ["not a mount in another folder", [fuse(2, 1, "/home/adam/m")], []],
    ["not under a mount of the site that stands on it", [fuse(2, 1, "/home/ada/m"), nfs(3, 2, "/home/ada/m")], []],
    ["not around a mount of the site", [fuse(2, 1, "/home/ada/m"), nfs(3, 2, "/home/ada/m/n")], []],
    [
      "not around a mount of the site in an inner mount",
      [fuse(2, 1, "/home/ada/m"), fuse(3, 2, "/home/ada/m/n"), nfs(4, 3, "/home/ada/m/n/o")],
      [],
    ],
    ["not a mount that a mount of the site hides", [fuse(2, 1, "/home/ada/m/n"), nfs(3, 1, "/home/ada/m")], []],
    [
      "not a hidden mount whose path is now a mount of the site",
      [fuse(2, 1, "/home/ada/m/n"), nfs(3, 1, "/home/ada/m"), nfs(4, 3, "/home/ada/m/n")],
      [],
    ],
  ])("%s", (_what, lines, ids) => {
    const mounts = parseMounts([ROOT, ...lines].join("\n"));
    expect(removableFuse(mounts, "/home/ada", (uid) => uid === 1000).map(({ id }) => id)).toEqual(ids);
  });
});
