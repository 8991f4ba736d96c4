/** Who our token belongs to: the user's name now, and the names that he had before, as far as they were seen under this very token. */
export interface MaasUser {
  readonly name: string;
  readonly formerNames: readonly string[];
}

/** A user who is renamed in MAAS keeps what he owns, and every answer calls him by the new name at once. */
export const isSameOwner = (before: string | null, now: string | null, user: MaasUser | null): boolean =>
  before === now || (before !== null && user !== null && now === user.name && user.formerNames.includes(before));
