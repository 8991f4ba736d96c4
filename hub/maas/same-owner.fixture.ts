import type { MaasUser } from "./same-owner.ts";

/** The hub's user in MAAS. The user's name is muster now and was hub and admin before. */
const muster: MaasUser = { name: "muster", formerNames: ["hub", "admin"] };

/** The machine's owner before and now, the user of the hub's token, and whether both owners are the same user. */
export const OWNERS: readonly (readonly [
  before: string | null,
  now: string | null,
  user: MaasUser | null,
  same: boolean,
])[] = [
  // The name did not change, or there was no owner before and now.
  ["bob", "bob", null, true],
  ["bob", "bob", muster, true],
  ["muster", "muster", muster, true],
  [null, null, muster, true],
  // The hub's own user, under his present name.
  ["hub", "muster", muster, true],
  ["admin", "muster", muster, true],
  // A different user.
  ["bob", "muster", null, false],
  ["bob", "muster", muster, false],
  ["bob", "admin", muster, false],
  [null, "muster", muster, false],
  ["muster", null, muster, false],
  // A user who now has a former name of the hub's user is a different user.
  ["muster", "hub", muster, false],
  ["hub", "admin", muster, false],
  // The names of the hub's user are not known.
  ["hub", "muster", null, false],
  ["hub", "muster", { name: "muster", formerNames: [] }, false],
];
