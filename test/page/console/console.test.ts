import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { ConsoleStage } from "./console-stage.ts";
import { consoleDriftCases } from "./drift-cases.ts";
import { consoleFormCases } from "./form-cases.ts";
import { consoleFrameCases } from "./frame-cases.ts";
import { consoleKeyCases } from "./key-cases.ts";
import { consoleNodeListCases } from "./node-list-cases.ts";
import { consoleOperationCases } from "./operation-cases.ts";
import { consoleReaderCases } from "./reader-cases.ts";
import { consoleRepairCases } from "./repair-cases.ts";
import { consoleVerbCases } from "./verb-cases.ts";

describe("the console", () => {
  let stage: ConsoleStage | undefined;
  const set = (): ConsoleStage => {
    if (stage === undefined) throw new Error("the hub and the browser have not started");
    return stage;
  };
  beforeAll(async () => {
    stage = await ConsoleStage.set();
  });
  afterEach(() => stage?.clear());
  afterAll(() => stage?.close());

  // The last cases change nodes, so the cases that count nodes come first.
  describe("for every reader", () => consoleReaderCases(set));
  describe("in its list of nodes", () => consoleNodeListCases(set));
  describe("in its forms", () => consoleFormCases(set));
  describe("in its screens of SSH keys", () => consoleKeyCases(set));
  describe("in its screens of operations and nodes", () => consoleOperationCases(set));
  describe("in its screens of drift and breakers", () => consoleDriftCases(set));
  describe("in its screens of repairs", () => consoleRepairCases(set));
  describe("when a person gives verbs", () => consoleVerbCases(set));
  describe("around every screen", () => consoleFrameCases(set));
});
