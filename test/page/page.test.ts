import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { actionCases } from "./action-cases.ts";
import { approvalCases } from "./approval-cases.ts";
import { lastingCases } from "./lasting-cases.ts";
import { loginCases } from "./login-cases.ts";
import { readerCases } from "./reader-cases.ts";
import { sectionCases } from "./section-cases.ts";
import { Stage } from "./stage.ts";
import { tokenCases } from "./token-cases.ts";

describe("the operators' page", () => {
  let stage: Stage | undefined;
  const set = (): Stage => {
    if (stage === undefined) throw new Error("the hub and the browser have not started");
    return stage;
  };
  beforeAll(async () => {
    stage = await Stage.set();
  });
  afterEach(() => stage?.clear());
  afterAll(() => stage?.close());

  // The order of the page suite's test cases matters: the first cases change no data, and the last case adds thousands of nodes.
  describe("logging in", () => loginCases(set));
  describe("what is shown", () => sectionCases(set));
  describe("for every reader", () => readerCases(set));
  describe("what can be done", () => actionCases(set));
  describe("with a second person", () => approvalCases(set));
  describe("with tokens", () => tokenCases(set));
  describe("while the world changes", () => lastingCases(set));
});
