import { expect, it } from "vitest";
import { CONDITION_TYPES } from "../../../../../shared/condition-types.ts";
import { meaningOf } from "./meanings.ts";

it("each of Muster's own conditions has a meaning for people", () => {
  const unknown = meaningOf("fabric.ready");
  expect(Object.keys(CONDITION_TYPES).filter((type) => meaningOf(type) === unknown)).toEqual([]);
});
