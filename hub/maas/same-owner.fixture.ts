import type { MaasUser } from "./same-owner.ts";

/** The test's user of MAAS is now called muster, and was called hub and admin before. */
const muster: MaasUser = { name: "muster", formerNames: ["hub", "admin"] };

/** Each test case names the machine's owner before and now, the user of the hub's token, and whether both owners are the same user. */
export const OWNERS: readonly (readonly [
  before: string | null,
  now: string | null,
  user: MaasUser | null,
  same: boolean,
])[] = [
  // Test cases in which the name of the machine's owner did not change, or the machine had no owner before and has none now.
  ["bob", "bob", null, true],
  ["bob", "bob", muster, true],
  ["muster", "muster", muster, true],
  [null, null, muster, true],
  // Test cases in which the machine's owner is the hub's own user, under his present name.
  ["hub", "muster", muster, true],
  ["admin", "muster", muster, true],
  // Test cases in which the machine's owner is now a different user than before.
  ["bob", "muster", null, false],
  ["bob", "muster", muster, false],
  ["bob", "admin", muster, false],
  [null, "muster", muster, false],
  ["muster", null, muster, false],
  // A user who now has a former name of the hub's user is a different user.
  ["muster", "hub", muster, false],
  ["hub", "admin", muster, false],
  // Test cases in which the hub does not know the former names of its own user.
  ["hub", "muster", null, false],
  ["hub", "muster", { name: "muster", formerNames: [] }, false],
];
