import type { MaasUser } from "./same-owner.ts";

/** Our user, called muster now, and hub and admin before. */
const muster: MaasUser = { name: "muster", formerNames: ["hub", "admin"] };

/** Who owned a machine before, who does now, whom our token belongs to, and whether that is the same owner. */
export const OWNERS: readonly (readonly [
  before: string | null,
  now: string | null,
  user: MaasUser | null,
  same: boolean,
])[] = [
  // Who he was, also as nobody.
  ["bob", "bob", null, true],
  ["bob", "bob", muster, true],
  ["muster", "muster", muster, true],
  [null, null, muster, true],
  // Our own user under the name that he has now.
  ["hub", "muster", muster, true],
  ["admin", "muster", muster, true],
  // Another one.
  ["bob", "muster", null, false],
  ["bob", "muster", muster, false],
  ["bob", "admin", muster, false],
  [null, "muster", muster, false],
  ["muster", null, muster, false],
  // Who has a name that our user had before is somebody else.
  ["muster", "hub", muster, false],
  ["hub", "admin", muster, false],
  // Nobody has said who our user is.
  ["hub", "muster", null, false],
  ["hub", "muster", { name: "muster", formerNames: [] }, false],
];
