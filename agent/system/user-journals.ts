/**
 * journald keeps the messages of a user's processes and services in files of their own, `user-UID.journal`. The files `user-UID.journal` belong to
 * root, and each user may read the files of the user's own uid, so the next account with the same uid would read what a tenant's programs printed.
 */
export const JOURNAL_FOLDERS = ["/var/log/journal", "/run/log/journal"] as const;

/** Matches a user's journal: the one that journald writes, one that journald has closed, and one that journald found damaged. */
const USER_JOURNAL = /^user-(\d{1,10})(?:@[^/]*)?\.journal~?$/;

/** Returns the uid whose messages a file holds, or null if the path is not that of a user's journal. */
export function uidOfJournal(path: string): number | null {
  const folder = JOURNAL_FOLDERS.find((one) => path.startsWith(`${one}/`));
  const [, name = "", ...more] = folder === undefined ? [] : path.slice(folder.length + 1).split("/");
  const [, uid] = USER_JOURNAL.exec(name) ?? [];
  return uid === undefined || more.length > 0 ? null : Number(uid);
}
