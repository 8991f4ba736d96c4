export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly comment: string;
  readonly home: string;
  readonly shell: string;
}
export interface Group {
  readonly name: string;
  readonly gid: number;
  readonly members: readonly string[];
}
export interface SubIds {
  readonly owner: string;
  readonly first: number;
  readonly count: number;
}

const rows = (text: string | null): string[][] =>
  (text ?? "")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split(":"));
const isNumber = (text: string | undefined): text is string => /^[0-9]{1,10}$/.test(text ?? "");

export const parseAccounts = (passwd: string | null): Account[] =>
  rows(passwd).flatMap(([name = "", , uid, gid, comment = "", home = "", shell = ""]) =>
    isNumber(uid) && isNumber(gid) ? [{ name, uid: Number(uid), gid: Number(gid), comment, home, shell }] : [],
  );

export const parseGroups = (group: string | null): Group[] =>
  rows(group).flatMap(([name = "", , gid, members = ""]) =>
    isNumber(gid) ? [{ name, gid: Number(gid), members: members.split(",").filter((one) => one !== "") }] : [],
  );

export const passwordField = (shadow: string | null, name: string): string | null =>
  rows(shadow).find(([owner]) => owner === name)?.[1] ?? null;

export const parseSubIds = (text: string | null): SubIds[] =>
  rows(text).flatMap(([owner = "", first, count]) =>
    isNumber(first) && isNumber(count) ? [{ owner, first: Number(first), count: Number(count) }] : [],
  );

const isOwnedBy = (line: string, name: string, uid: number): boolean =>
  line.startsWith(`${name}:`) || line.startsWith(`${uid}:`);

export const withoutSubIds = (text: string, name: string, uid: number): string =>
  text
    .split("\n")
    .filter((line) => !isOwnedBy(line, name, uid))
    .join("\n");

/**
 * Linux distributions give subordinate ids from 100,000 on. If `/etc/subuid` gave the tenant ids below 100,000, processes of the host would look like
 * the tenant's processes.
 */
const FIRST_SUB_ID = 100_000;
const MOST_SUB_IDS = 16 * 65_536;

/**
 * A range of subordinate uids belongs to the account only if no other account or range could own its uids. A tenant with root rights may have written
 * any line into `/etc/subuid`, so the agent ignores a range that overlaps an account's uid or another range.
 */
export function usableSubUids(
  all: readonly SubIds[],
  accounts: readonly Account[],
  name: string,
  uid: number,
): SubIds[] {
  const isOwn = (range: SubIds): boolean => range.owner === name || range.owner === String(uid);
  const overlaps = (a: SubIds, b: SubIds): boolean => a.first < b.first + b.count && b.first < a.first + a.count;
  return all.filter(
    (range) =>
      isOwn(range) &&
      range.first >= FIRST_SUB_ID &&
      range.count <= MOST_SUB_IDS &&
      !accounts.some((account) => overlaps(range, { owner: "", first: account.uid, count: 1 })) &&
      !all.some((other) => !isOwn(other) && overlaps(range, other)),
  );
}
