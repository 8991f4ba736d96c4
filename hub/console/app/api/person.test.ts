import { expect, it } from "vitest";
import { personKey } from "./person.ts";

it("tells persons and roles apart", () => {
  const key = personKey({ name: "ann", role: "operator" });
  expect(personKey({ name: "ann", role: "operator" })).toBe(key);
  expect(personKey({ name: "bob", role: "operator" })).not.toBe(key);
  expect(personKey({ name: "ann", role: "viewer" })).not.toBe(key);
});
