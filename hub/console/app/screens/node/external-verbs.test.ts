import { expect, it } from "vitest";
import { type ExternalVerb, whyNotReported } from "./external-verbs.ts";
import type { ExternalAttempt } from "./node-questions.ts";

const VERBS: readonly ExternalVerb[] = ["complete", "fail", "abandon"];
const given = (status: ExternalAttempt["status"], name = "foreman", superseded = false) =>
  VERBS.filter((verb) => whyNotReported(verb, { status, superseded, holder: "foreman" }, name) === null);

it("offers the reports of an attempt to who began it, and to everybody that it is abandoned", () => {
  expect(["begun", "in_progress", "failed_retryable"].map((status) => given(status as "begun"))).toEqual(
    Array(3).fill(VERBS),
  );
  expect([given("verifying"), given("completed"), given("abandoned")]).toEqual([["fail", "abandon"], [], []]);
  expect([given("begun", "ann"), given("begun", "foreman", true)]).toEqual([["abandon"], []]);
});
