import type { Entry } from "../system/confined.ts";

export interface User {
  readonly uid: number;
  readonly gids: ReadonlySet<number>;
}

export const RIGHTS = { read: 4, write: 2, execute: 1 } as const;
export type Right = keyof typeof RIGHTS;

/** In an access control list, `id` is null in the lines of the owner, the owning group, the mask and the other users. */
export interface AclLine {
  readonly tag: "user" | "group" | "mask" | "other";
  readonly id: number | null;
  readonly bits: number;
}

/** Returns the access control list that grants the same rights as a file's mode. */
export const aclOfMode = (mode: number): AclLine[] => [
  { tag: "user", id: null, bits: (mode >> 6) & 7 },
  { tag: "group", id: null, bits: (mode >> 3) & 7 },
  { tag: "other", id: null, bits: mode & 7 },
];

const LINE = /^(user|group|mask|other):([0-9]{0,10}):([r-])([w-])([x-])(\s+#effective:[rwx-]{3})?$/;

/** `parseAcl` returns null if the output of `getfacl` has an unknown line, or lacks a line that every access control list has. */
export function parseAcl(text: string): AclLine[] | null {
  const lines: AclLine[] = [];
  for (const line of text.split("\n").filter((one) => one !== "" && !one.startsWith("default:"))) {
    const [, tag, id, read, write, execute] = LINE.exec(line) ?? [];
    if (tag === undefined) return null;
    const bits = (read === "r" ? 4 : 0) + (write === "w" ? 2 : 0) + (execute === "x" ? 1 : 0);
    lines.push({ tag: tag as AclLine["tag"], id: id === "" ? null : Number(id), bits });
  }
  const has = (tag: AclLine["tag"]): boolean => lines.some((line) => line.tag === tag && line.id === null);
  return has("user") && has("group") && has("other") ? lines : null;
}

/**
 * True if the Linux kernel grants the right to the user, by the algorithm of `acl(5)`. In an access control list, the first class to which the user
 * belongs decides: the owner, the named users, the groups, the other users. The mask of an access control list limits the named users and all groups.
 */
export function mayUse(acl: readonly AclLine[], owner: Pick<Entry, "uid" | "gid">, user: User, right: Right): boolean {
  const grants = (bits: number | undefined): boolean => ((bits ?? 0) & RIGHTS[right]) !== 0;
  const own = (tag: AclLine["tag"]): number | undefined =>
    acl.find((line) => line.tag === tag && line.id === null)?.bits;
  if (user.uid === owner.uid) return grants(own("user"));
  const mask = own("mask") ?? 7;
  const named = acl.find((line) => line.tag === "user" && line.id === user.uid);
  if (named !== undefined) return grants(named.bits & mask);
  const groups = acl.filter((line) => line.tag === "group" && user.gids.has(line.id ?? owner.gid));
  return groups.length === 0 ? grants(own("other")) : groups.some((line) => grants(line.bits & mask));
}
