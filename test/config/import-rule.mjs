/** What the files with rules about imports share. */

/** Tests (`*.test.ts`, `*.fixture.ts`, all of test/) import anything; `production` is all other code. */
export const TESTS = "(^test/|[.](test|fixture)[.]ts$)";

/** dependency-cruiser lists Node's own modules without "node:". The entry NODE in a list of allowed imports stands for all of Node's modules. */
export const NODE = Symbol("node");

export const NPM = "node_modules/";

export const HUB_ANYWHERE = "^hub/(outbound|timing|metrics/counted|traces/current-stage)[/.]";

export function only(name, from, allowed, comment, { except = [] } = {}) {
  const paths = allowed.filter((entry) => entry !== NODE);
  return {
    name,
    comment,
    severity: "error",
    from: { path: from, pathNot: [TESTS, ...except] },
    to: { pathNot: paths, ...(allowed.includes(NODE) ? { dependencyTypesNot: ["core"] } : {}) },
  };
}

export function never(name, from, to, comment, { except = [] } = {}) {
  return { name, comment, severity: "error", from: { path: from, pathNot: [TESTS, ...except] }, to: { path: to } };
}
