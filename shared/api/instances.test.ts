import { expect, it } from "vitest";
import { InstanceReinstall } from "./instances.ts";

it.each([
  [true, true],
  [false, false],
  [undefined, false],
  ["true", false],
])("takes a reinstall with acknowledge_data_loss %j: %j", (acknowledge_data_loss, taken) => {
  expect(InstanceReinstall.safeParse({ reason: "r", acknowledge_data_loss }).success).toBe(taken);
});
