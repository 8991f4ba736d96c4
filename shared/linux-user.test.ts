import { describe, expect, it } from "vitest";
import { isReservedLoginName, LoginUser, RESERVED_LOGIN_NAMES } from "./linux-user.ts";

describe("a tenant's login name", () => {
  it.each(["ada", "a", "a-b_c9", `a${"b".repeat(31)}`, "rooted", "x-muster", "sysadmin"])("may be %s", (name) => {
    expect(LoginUser.parse(name)).toBe(name);
  });

  it.each([...RESERVED_LOGIN_NAMES])("must not be %s, which belongs to the host", (name) => {
    expect(LoginUser.safeParse(name).success).toBe(false);
  });

  it.each([
    "muster",
    "muster-agent",
    "maas",
    "maas-log",
    "weka",
    "wekauser",
    "systemd-network",
    "nvidia-x",
    "cloud-init",
  ])("must not be %s, which begins with a word of the host's software", (name) => {
    expect(isReservedLoginName(name)).toBe(true);
    expect(LoginUser.safeParse(name).success).toBe(false);
  });

  it.each([
    ["empty", ""],
    ["longer than 32 characters", "a".repeat(33)],
    ["in capital letters", "Ada"],
    ["a number", "1000"],
    ["an option", "-ada"],
    ["with a path", "a/../b"],
    ["with a dot", "a.b"],
    ["with a colon", "ada:x"],
    ["with a line end", "ada\n"],
    ["with a space", "ada b"],
    ["with a dollar", "ada$"],
    ["with a letter that is not ASCII", "adä"],
    ["with a zero byte", "ada\0"],
  ])("must not be %s", (_what, name) => {
    expect(LoginUser.safeParse(name).success).toBe(false);
  });
});
