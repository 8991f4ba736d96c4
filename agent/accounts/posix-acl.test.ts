import { describe, expect, it } from "vitest";
import { aclOfMode, mayUse, parseAcl, RIGHTS, type Right } from "./posix-acl.ts";

const OWNER = { uid: 0, gid: 27 };
const user = (uid: number, ...gids: number[]) => ({ uid, gids: new Set(gids) });
const acl = (text: string) => parseAcl(text) ?? [];
const FULL = "user::rw-\nuser:20000:rw-\nuser:20001:r--\ngroup::r--\ngroup:50:rw-\nmask::rw-\nother::---\n";

describe("the rights to a file", () => {
  it("are those of one class of the mode, for each class, mode and right", () => {
    for (let mode = 0; mode <= 0o777; mode += 1)
      for (const right of Object.keys(RIGHTS) as Right[]) {
        const has = (shift: number) => ((mode >> shift) & RIGHTS[right]) !== 0;
        const rules = aclOfMode(mode);
        expect(mayUse(rules, OWNER, user(0, 27), right)).toBe(has(6));
        expect(mayUse(rules, OWNER, user(20_000, 100, 27), right)).toBe(has(3));
        expect(mayUse(rules, OWNER, user(20_000, 100), right)).toBe(has(0));
      }
  });

  it.each([
    ["a named user", user(20_000), FULL, true],
    ["a named user without the right, whose group has it", user(20_001, 50), FULL, false],
    ["a named group", user(20_002, 50), FULL, true],
    ["one of two groups", user(20_002, 27, 50), FULL, true],
    ["the owning group without the right", user(20_002, 27), FULL, false],
    ["nobody", user(20_002, 100), FULL, false],
    ["a named user behind the mask", user(20_000), FULL.replace("mask::rw-", "mask::r--"), false],
    ["a named group behind the mask", user(20_002, 50), FULL.replace("mask::rw-", "mask::r--"), false],
    ["the others, whom the mask does not limit", user(20_002), FULL.replace("other::---", "other::-w-"), true],
    ["the owner, whom the mask does not limit", user(0), FULL.replace("mask::rw-", "mask::---"), true],
  ])("are those of the access control list for %s", (_who, who, text, expected) => {
    expect(mayUse(acl(text), OWNER, who, "write")).toBe(expected);
  });

  it("are read from the lines that getfacl prints, without the defaults of a folder", () => {
    const text =
      "user::rwx\nuser:20000:rwx\t\t\t#effective:r-x\ngroup::r-x\nmask::r-x\nother::r-x\ndefault:user::rwx\n\n";
    expect(parseAcl(text)?.[1]).toEqual({ tag: "user", id: 20_000, bits: 7 });
    expect(parseAcl(text)).toHaveLength(5);
    for (const odd of ["", "user::rw-\n", "user::rw-\ngroup::r--\n", `${FULL}user:ada:rw-\n`, `${FULL}flags:x\n`])
      expect(parseAcl(odd), odd).toBeNull();
  });
});
