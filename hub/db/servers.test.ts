import { describe, expect, it } from "vitest";
import { databaseUrlFault, serversOf } from "./servers.ts";

const WRITES = "target_session_attrs=read-write";

describe("the servers of a DATABASE_URL", () => {
  it.each([
    ["postgres://u:p@db/muster", ["postgres://u:p@db/muster"]],
    ["postgres://u:p@a:1,b/muster", ["postgres://u:p@a:1/muster", "postgres://u:p@b/muster"]],
    [
      `postgresql://u@a,[::1]:5433/m?sslmode=require&${WRITES}`,
      ["a", "[::1]:5433"].map((at) => `postgresql://u@${at}/m?sslmode=require`),
    ],
    [`postgres://db/m?${WRITES}`, ["postgres://db/m"]],
    ["postgres://u:p@/m?host=/run/postgresql", ["postgres://u:p@/m?host=/run/postgresql"]],
  ])("of %s are %j", (url, urls) => {
    expect(serversOf(url)).toEqual(urls);
  });

  it.each([
    ["postgres://u:p@db:5432/muster", null],
    ["postgres://u:p@a:5432,b:5432/muster?target_session_attrs=primary", null],
    ["mysql://root:hunter2@db/x", /^must be postgres:/],
    ["postgres://u:hunter2@a:5432,b:99999/x", /^must be postgres:/],
    ["postgres://u:hunter2@a,,b/x", /^must be postgres:/],
    ["hunter2", /^must be postgres:/],
    ["postgres://u:hunter2@a,b/x?target_session_attrs=standby", /^needs a server that takes writes/],
    [`postgres://u:hunter2@${Array.from({ length: 17 }, () => "a").join()}/x`, /^names more than 16 servers/],
  ])("can be used or not: %s", (url, fault) => {
    const said = databaseUrlFault(url);
    if (fault === null) expect(said).toBeNull();
    else expect(said).toMatch(fault);
    expect(said ?? "").not.toContain("hunter2");
  });
});
