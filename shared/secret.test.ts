import { inspect } from "node:util";
import { expect, it } from "vitest";
import { Secret } from "./secret.ts";

it("prints as redacted in a template, in JSON and in a log, and tells its text only when asked", () => {
  const login = { user: "root", pass: new Secret("hunter2") };
  expect(`${login.pass} of ${login.user}`).toBe("[redacted] of root");
  expect(JSON.stringify(login)).toBe('{"user":"root","pass":"[redacted]"}');
  expect(inspect(login, { depth: null, showHidden: true })).toBe("{ user: 'root', pass: [redacted] }");
  expect(Object.keys(login.pass)).toEqual([]);
  expect(login.pass.reveal()).toBe("hunter2");
});
