import { expect, it } from "vitest";
import { OWNERS } from "./same-owner.fixture.ts";
import { isSameOwner } from "./same-owner.ts";

it.each(OWNERS)(
  "a machine of %s that now belongs to %s, with the user %j, has the same owner: %s",
  (before, now, user, same) => {
    expect(isSameOwner(before, now, user)).toBe(same);
  },
);
