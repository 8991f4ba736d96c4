import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { LONG_TESTS } from "./config/rotation/long-tests.ts";
import { chosen, divided, GROUPS } from "./config/rotation/rotation.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const names = Object.keys(LONG_TESTS).sort();
const commits = Array.from({ length: GROUPS }, (_, index) => `0000000${index}`.padEnd(40, "0"));
const cost = (group: readonly string[]): number => group.reduce((sum, name) => sum + (LONG_TESTS[name] ?? 0), 0);

describe("the long tests", () => {
  it("are each in one of the groups, which have about equal cost", () => {
    const groups = divided(LONG_TESTS, GROUPS);
    expect(groups.flat().sort()).toEqual(names);
    const costs = groups.map(cost);
    expect(Math.max(...costs)).toBeLessThan(1.25 * Math.min(...costs));
  });

  it("are files of this repository, or steps of .ci/run", () => {
    const files = new Set(globSync("{agent,test}/**/*.test.ts", { cwd: ROOT }));
    expect(names.filter((name) => !files.has(name))).toEqual(["first-boot", "test-npm-postgres", "test-page"]);
    for (const suite of ["e2e", "integration", "packages", "properties"])
      for (const file of files) if (file.startsWith(`test/${suite}/`)) expect(names).toContain(file);
  });

  it("all run within as many commits as there are groups, when each commit has the next group", () => {
    const choices = commits.map((commit) => chosen(undefined, commit));
    expect(choices.flatMap(({ run }) => run).sort()).toEqual(names);
    for (const { run, leftOut } of choices) expect([...run, ...leftOut].sort()).toEqual(names);
  });

  it("are the same whenever the same commit runs, and are chosen by the commit's first digits", () => {
    expect(chosen(undefined, "d288f4f5".padEnd(40, "0"))).toEqual(chosen(undefined, "d288f4f5".padEnd(40, "f")));
    expect(chosen(undefined, "d288f4f5".padEnd(40, "0")).because).toContain(
      "group 6 of 8 of the long tests, of commit",
    );
  });

  it("all run outside git, and where MUSTER_TEST_GROUP asks for all", () => {
    for (const choice of [chosen(undefined, null), chosen("all", "d288f4f5")])
      expect([[...choice.run].sort(), choice.leftOut]).toEqual([names, []]);
  });

  it("run by the number of their group, whatever the commit is", () => {
    for (const [index, group] of divided(LONG_TESTS, GROUPS).entries())
      expect(chosen(`${index + 1}`, "ffffffff").run).toEqual(group);
  });

  it.each(["", "0", "9", "1.5", "-1", "01", "All", "1 "])("are not chosen by the setting '%s'", (wanted) => {
    expect(() => chosen(wanted, null)).toThrow(/set it to 'all' or to a number from 1 to 8/);
  });
});
