import { expect, it } from "vitest";
import { type BatchVerb, VERBS, whyNot } from "./batch-verbs.ts";

const running = { failed: 0, paused: null, counts: { pending: 3, running: 1 }, done: false };
const allowed = (given: object): string[] =>
  (Object.keys(VERBS) as BatchVerb[]).filter((verb) => whyNot(verb, { ...running, ...given } as never) === null);

it("offers each verb of a batch only while it has an effect", () => {
  expect(allowed({})).toEqual(["pause", "cancel"]);
  expect(allowed({ failed: 2 })).toEqual(["recover", "pause", "cancel"]);
  expect(allowed({ paused: { since: "", by: null, reason: "", next_action: "" } })).toEqual(["resume", "cancel"]);
  expect(allowed({ counts: { running: 1 } })).toEqual(["cancel"]);
  expect(allowed({ counts: {}, done: true })).toEqual([]);
  expect(allowed({ counts: {}, done: true, failed: 1 })).toEqual(["recover"]);
});
