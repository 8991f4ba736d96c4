import { expect, it } from "vitest";
import { checkKey, type KeyValues, keyBody } from "./key-form.ts";

const blob = (...parts: string[]): string =>
  btoa(parts.map((part) => `\0\0\0${String.fromCharCode(part.length)}${part}`).join(""));
const KEY = `ssh-ed25519 ${blob("ssh-ed25519", "k".repeat(32))} ada@acme`;
const GOOD: KeyValues = { name: "ada", tenant: "acme", public_key: KEY, site_ids: [] };
const wrong = (changes: Partial<KeyValues>): string[] =>
  Object.entries(checkKey({ ...GOOD, ...changes })).flatMap(([name, error]) => (error === undefined ? [] : [name]));

it("takes a key for all sites or for some", () => {
  expect(wrong({ public_key: `  ${KEY}\n` })).toEqual([]);
  expect(keyBody({ ...GOOD, name: " ada ", public_key: `${KEY}\n` })).toEqual({
    ...{ name: "ada", tenant: "acme", public_key: KEY },
  });
  expect(keyBody({ ...GOOD, site_ids: ["s1"] }).site_ids).toEqual(["s1"]);
});

it("says which field is wrong, and refuses a private key", () => {
  expect(wrong({ name: "" })).toEqual(["name"]);
  expect(wrong({ tenant: "" })).toEqual(["tenant"]);
  expect(wrong({ public_key: "" })).toEqual(["public_key"]);
  const said = checkKey({ ...GOOD, public_key: "-----BEGIN OPENSSH PRIVATE KEY-----\nabc" }).public_key;
  expect(said).toContain("is a private key");
});
