/** The user of the hub's MAAS token: the user's present name, and the former names that the hub has seen with this token. */
export interface MaasUser {
  readonly name: string;
  readonly formerNames: readonly string[];
}

/** A user who is renamed in MAAS keeps his machines, and MAAS shows the new name at once. */
export const isSameOwner = (before: string | null, now: string | null, user: MaasUser | null): boolean =>
  before === now || (before !== null && user !== null && now === user.name && user.formerNames.includes(before));
