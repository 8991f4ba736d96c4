import { describe, expect, it } from "vitest";
import { keysOf } from "../accounts/keyrings.ts";
import { parseKeyUsers } from "./key-users.ts";

describe("the kernel's tables of keys", () => {
  it("tell the counts of each uid", () => {
    const text = "    0:    49 48/48 47/1000000 1062/25000000\n20000:     3 2/2 1/200 20/20000\n";
    expect(parseKeyUsers(text)).toEqual([
      { uid: 0, keys: 48, inQuota: 47 },
      { uid: 20_000, keys: 2, inQuota: 1 },
    ]);
    expect(parseKeyUsers("")).toEqual([]);
  });

  it("are not guessed at in another form", () => {
    expect(() => parseKeyUsers("20000: 3 2/2\n")).toThrow("unknown form");
  });

  it("tell the keys of one uid, also with numbers in their descriptions", () => {
    const text = [
      "05108501 I--Q---     1 perm 1f3f0000     0 65534 keyring   _uid_ses.0: 1",
      "20e89395 I------     2   3d 1f030000 20000 65534 keyring   _persistent.20000: empty",
      "2be9696d I--Q---     1 perm 3f010000 20000 20000 user      0 20000 keyring: 6",
      "2be9696e I--Q---     1 perm 3f010000 20001 20000 user      a: 6",
      "",
    ].join("\n");
    expect(keysOf(text, 20_000)).toEqual([
      { id: "0x20e89395", type: "keyring" },
      { id: "0x2be9696d", type: "user" },
    ]);
  });
});
