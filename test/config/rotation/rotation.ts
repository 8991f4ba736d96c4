/**
 * All tests together take 45 minutes on two cores. So `npm test` runs the tests that are no long tests, and one group of the long ones. The number of
 * commits up to the present one chooses the group, so that a commit always runs the same tests, and its successor those of the next group.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { LONG_TESTS } from "./long-tests.ts";

/** With this number of groups, everything that .ci/run runs ends within 15 minutes on two cores. */
export const GROUPS = 10;

/** Names of long tests. */
export type Group = readonly string[];

/** Divides long tests into groups of about equal cost: the next most expensive test goes into the group with the least cost. */
export function divided(costs: Readonly<Record<string, number>>, groups: number): readonly Group[] {
  const filled = Array.from({ length: groups }, () => ({ cost: 0, names: [] as string[] }));
  const sorted = Object.entries(costs).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  for (const [name, cost] of sorted) {
    const least = filled.reduce((best, group) => (group.cost < best.cost ? group : best));
    least.names.push(name);
    least.cost += cost;
  }
  return filled.map(({ names }) => names);
}

export type Choice = {
  /** Says in words which long tests run, and why these. */
  readonly because: string;
  /** The long tests that run. */
  readonly run: Group;
  /** The long tests that do not run. */
  readonly leftOut: Group;
};

const ALL: Group = Object.keys(LONG_TESTS);

/** A commit, and the number of commits up to it. A clone without the whole history has the number of its hash instead. */
export interface Commit {
  readonly hash: string;
  readonly number: number;
}

/**
 * Chooses the long tests. `wanted` is the value of MUSTER_TEST_GROUP: `all`, or the number of a group from 1 on. Without `wanted`, the number of the
 * commit chooses the group. Without a commit, which is so for sources outside git, all tests run.
 */
export function chosen(wanted: string | undefined, commit: Commit | null): Choice {
  const all = (because: string): Choice => ({ because, run: ALL, leftOut: [] });
  if (wanted === "all") return all("all long tests, as MUSTER_TEST_GROUP says");
  if (wanted !== undefined) {
    if (!/^[1-9][0-9]?$/.test(wanted) || Number(wanted) > GROUPS)
      throw new Error(`MUSTER_TEST_GROUP is '${wanted}'; set it to 'all' or to a number from 1 to ${GROUPS}`);
    return group(Number(wanted), "as MUSTER_TEST_GROUP says");
  }
  if (commit === null) return all("all long tests, because these sources have no commit");
  return group((commit.number % GROUPS) + 1, `of commit ${commit.hash.slice(0, 8)}`);
}

function group(number: number, why: string): Choice {
  const run = divided(LONG_TESTS, GROUPS)[number - 1] ?? [];
  return {
    because: `group ${number} of ${GROUPS} of the long tests, ${why}; npm run test:all runs all`,
    run,
    leftOut: ALL.filter((name) => !run.includes(name)),
  };
}

/** The choice for the environment and the working tree of this process. */
export function chosenHere(): Choice {
  return chosen(process.env["MUSTER_TEST_GROUP"], headCommit());
}

/** The commit of the working tree, or null outside git. */
function headCommit(): Commit | null {
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  const git = (...args: readonly string[]): string | null => {
    const { status, stdout } = spawnSync("git", ["-c", "safe.directory=*", "-C", root, ...args], { encoding: "utf8" });
    return status === 0 ? stdout.trim() : null;
  };
  const hash = git("rev-parse", "--verify", "HEAD");
  if (hash === null) return null;
  const count = git("rev-parse", "--is-shallow-repository") === "false" ? git("rev-list", "--count", "HEAD") : null;
  return { hash, number: count === null ? Number.parseInt(hash.slice(0, 8), 16) : Number(count) };
}
