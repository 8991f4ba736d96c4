import { expect, it } from "vitest";
import type { Screen } from "./screen.ts";
import { SCREENS } from "./screens.ts";

it("gives each screen of the navigation a key of its own", () => {
  const listed = (SCREENS as readonly Screen[]).filter(({ group }) => group !== undefined);
  const keys = listed.map(({ key }) => key);
  expect(keys.filter((key, n) => key === undefined || keys.indexOf(key) !== n)).toEqual([]);
});
