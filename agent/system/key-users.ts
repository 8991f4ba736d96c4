/** The number of keys of one uid in the kernel, from a line of `/proc/key-users`: `uid: usage nkeys/nikeys qnkeys/maxkeys qnbytes/maxbytes`. */
export interface KeyUser {
  readonly uid: number;
  /** All keys and keyrings of the uid. */
  readonly keys: number;
  /**
   * The keys and keyrings that count against the quota of the uid. A uid's persistent keyring does not count against the quota, but the keys in this
   * keyring do.
   */
  readonly inQuota: number;
}

export const KEY_USERS = "/proc/key-users";
/** A kernel that supports keyrings has the folder /proc/sys/kernel/keys, also in a sandbox that hides `/proc/key-users`. */
export const KEY_SETTINGS = "/proc/sys/kernel/keys";
export const KEYS_HIDDEN = `The kernel has keyrings, but ${KEY_USERS} cannot be read here.`;

const LINE = /^\s*(\d+):\s+\d+\s+(\d+)\/\d+\s+(\d+)\/\d+\s+\d+\/\d+\s*$/;

/** Parses the text of `/proc/key-users`, which shows root the counts of every uid. `/proc/keys` shows root only the keys that root may view. */
export function parseKeyUsers(text: string): KeyUser[] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [, uid, keys, inQuota] = LINE.exec(line) ?? [];
      if (uid === undefined || keys === undefined || inQuota === undefined)
        throw new Error(`${KEY_USERS} has a line in an unknown form.`);
      return { uid: Number(uid), keys: Number(keys), inQuota: Number(inQuota) };
    });
}
