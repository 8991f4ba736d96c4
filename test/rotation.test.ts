import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { LONG_TESTS } from "./config/rotation/long-tests.ts";
import { chosen, divided, GROUPS } from "./config/rotation/rotation.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const names = Object.keys(LONG_TESTS).sort();
const commit = (number: number) => ({ hash: "d288f4f5".padEnd(40, "0"), number });
const commits = Array.from({ length: GROUPS }, (_, index) => commit(700 + index));
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
    const script = readFileSync(`${ROOT}.ci/run`, "utf8");
    const steps = [...script.matchAll(/^ +if_long_test_of_group (\S+) /gm)].map(([, name]) => name);
    expect(steps.length).toBeGreaterThan(0);
    expect(names.filter((name) => !files.has(name))).toEqual(steps.sort());
    for (const suite of ["db", "e2e", "integration", "packages", "properties"])
      for (const file of files) if (file.startsWith(`test/${suite}/`)) expect(names).toContain(file);
  });

  it("all run within as many commits as there are groups", () => {
    const choices = commits.map((one) => chosen(undefined, one));
    expect(choices.flatMap(({ run }) => run).sort()).toEqual(names);
    for (const { run, leftOut } of choices) expect([...run, ...leftOut].sort()).toEqual(names);
  });

  it("are chosen by the number of the commit, and by nothing else", () => {
    expect(chosen(undefined, { hash: "f".repeat(40), number: 701 }).run).toEqual(chosen(undefined, commit(701)).run);
    expect(chosen(undefined, commit(701)).because).toContain("group 2 of 10 of the long tests, of commit d288f4f5");
  });

  it("all run outside git, and where MUSTER_TEST_GROUP asks for all", () => {
    for (const choice of [chosen(undefined, null), chosen("all", commit(1))])
      expect([[...choice.run].sort(), choice.leftOut]).toEqual([names, []]);
  });

  it("run by the number of their group, whatever the commit is", () => {
    for (const [index, group] of divided(LONG_TESTS, GROUPS).entries())
      expect(chosen(`${index + 1}`, commit(1)).run).toEqual(group);
  });

  it.each(["", "0", "11", "1.5", "-1", "01", "All", "1 "])("are not chosen by the setting '%s'", (wanted) => {
    expect(() => chosen(wanted, null)).toThrow(/set it to 'all' or to a number from 1 to 10/);
  });
});
