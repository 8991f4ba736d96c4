import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { hasRight, RIGHTS, RIGHTS_OF, type Right, rolesWith } from "./rights.ts";
import { API_ROLES } from "./roles.ts";

const PAGE = readFileSync(new URL("../../docs/people.md", import.meta.url), "utf8");

describe("the rights of the roles", () => {
  it("are those that docs/people.md lists", () => {
    const rows = [...PAGE.matchAll(/^\| `(\w+)` \| (.*) \| (.*) \|$/gm)].map(([, right, words, roles]) => ({
      right,
      words,
      roles: roles?.split(", ").toSorted(),
    }));
    const known = (Object.keys(RIGHTS) as Right[]).map((right) => ({
      right,
      words: RIGHTS[right],
      roles: rolesWith(right).toSorted(),
    }));
    expect(rows).toEqual(known);
  });

  it("let an admin do everything, and every role ask who it is", () => {
    expect(RIGHTS_OF.admin.toSorted()).toEqual((Object.keys(RIGHTS) as Right[]).toSorted());
    for (const role of API_ROLES) expect(hasRight(role, "use_hub")).toBe(true);
  });

  it("let a viewer and a tenant change nothing, and a repair system only its repairs", () => {
    const changes = (role: "viewer" | "tenant" | "repair"): Right[] =>
      RIGHTS_OF[role].filter((right) => !right.startsWith("read_") && right !== "use_hub");
    expect([changes("viewer"), changes("tenant"), changes("repair")]).toEqual([[], [], ["repair_nodes"]]);
  });
});
