import { describe, expect, it } from "vitest";
import {
  parseAccounts,
  parseGroups,
  parseSubIds,
  passwordField,
  usableSubUids,
  withoutSubIds,
} from "./account-files.ts";
import { isHuman } from "./human-uid.ts";

const PASSWD =
  "root:x:0:0:root:/root:/bin/bash\n# a comment\n+nis\n\nada:x:20000:20000:Muster allocation 1:/home/ada:/bin/bash\nbad:x:one:1::/:\n";

describe("the uid of a human user", () => {
  it.each([
    [0, false],
    [999, false],
    [1_000, true],
    [20_000, true],
    [60_001, true],
    [61_183, true],
    [61_184, false],
    [65_519, false],
    [65_534, false],
    [65_535, false],
    [65_536, true],
    [100_000, true],
    [4_294_967_293, true],
    [4_294_967_294, false],
    [4_294_967_295, false],
  ])("%i is one: %s", (uid, human) => expect(isHuman(uid)).toBe(human));
});

describe("the host's files of accounts", () => {
  it("are read without lines that are no accounts", () => {
    expect(parseAccounts(PASSWD).map(({ name, uid, comment, home }) => [name, uid, comment, home])).toEqual([
      ["root", 0, "root", "/root"],
      ["ada", 20_000, "Muster allocation 1", "/home/ada"],
    ]);
    expect(parseAccounts(null)).toEqual([]);
    expect(parseGroups("sudo:x:27:ada\nada:x:20000:\n")).toEqual([
      { name: "sudo", gid: 27, members: ["ada"] },
      { name: "ada", gid: 20_000, members: [] },
    ]);
  });

  it("tell the password field of exactly one name", () => {
    const shadow = "ada2:!:1::::::\nada:*:1::::::\n";
    expect(passwordField(shadow, "ada")).toBe("*");
    expect(passwordField(shadow, "ad")).toBeNull();
    expect(passwordField(null, "ada")).toBeNull();
  });

  it("lose only the lines of one name and uid", () => {
    const text = "ada:1:1\nada2:2:2\n20000:3:3\n200001:4:4\n";
    expect(withoutSubIds(text, "ada", 20_000)).toBe("ada2:2:2\n200001:4:4\n");
  });
});

describe("the subordinate uids of a tenant", () => {
  const usable = (text: string) =>
    usableSubUids(parseSubIds(text), parseAccounts(PASSWD), "ada", 20_000).map(({ first, count }) => [first, count]);

  it.each([
    ["its own range, by name", "ada:165536:65536", [[165_536, 65_536]]],
    ["its own range, by uid", "20000:165536:65536", [[165_536, 65_536]]],
    ["not the range of another", "bob:165536:65536", []],
    ["not a range with root", "ada:0:65536", []],
    ["not a range below the distributions' first", "ada:99999:10", []],
    ["not a huge range", "ada:100000:4294867295", []],
    ["not a range that reaches into another's", "ada:165536:65536\nbob:200000:10", []],
    ["a range just beside another's", "ada:165536:100\nbob:165636:10", [[165_536, 100]]],
    ["nothing from a damaged line", "ada:x:65536\nada", []],
  ])("are %s", (_what, text, ranges) => {
    expect(usable(text)).toEqual(ranges);
  });

  it("are not a range with an account of the host", () => {
    const accounts = parseAccounts("bob:x:165600:1::/:");
    expect(usableSubUids(parseSubIds("ada:165536:65536"), accounts, "ada", 20_000)).toEqual([]);
  });
});
