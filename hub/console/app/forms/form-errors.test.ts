import { expect, it } from "vitest";
import { complaints, errorsByField, hasComplaint } from "./form-errors.ts";

it("puts the hub's complaints at their fields, and names the entry of a list", () => {
  const fields = [
    { pointer: "/tenant", message: "is too long" },
    { pointer: "/ssh_keys/1", message: "is no key" },
    { pointer: "/ssh_keys/2", message: "is twice there" },
  ];
  expect(errorsByField(fields)).toEqual({ tenant: "is too long", ssh_keys: "1 is no key; 2 is twice there" });
});

it("knows a form without complaints", () => {
  expect(complaints({ a: undefined, b: "is missing" })).toEqual({ b: "is missing" });
  expect(hasComplaint({ a: undefined })).toBe(false);
  expect(hasComplaint({ a: undefined, b: "is missing" })).toBe(true);
});
