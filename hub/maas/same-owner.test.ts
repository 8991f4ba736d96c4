import { describe, expect, it } from "vitest";
import { isSameOwner } from "./same-owner.ts";

const user = { name: "muster", formerNames: ["hub", "admin"] };

describe("the owner of a machine", () => {
  it("is who he was, also as nobody", () => {
    expect(isSameOwner("bob", "bob", null)).toBe(true);
    expect(isSameOwner(null, null, user)).toBe(true);
  });
  it("is our own user under the name that he has now", () => {
    for (const before of ["hub", "admin"]) expect(isSameOwner(before, "muster", user)).toBe(true);
  });
  it("is another one otherwise", () => {
    expect(isSameOwner("bob", "muster", user)).toBe(false);
    expect(isSameOwner(null, "muster", user)).toBe(false);
    expect(isSameOwner("muster", null, user)).toBe(false);
    // Who has a name that our user had before is somebody else.
    expect(isSameOwner("muster", "hub", user)).toBe(false);
    expect(isSameOwner("hub", "admin", user)).toBe(false);
    expect(isSameOwner("hub", "muster", null)).toBe(false);
  });
});
