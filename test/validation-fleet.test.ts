import { expect, it } from "vitest";
import { wasCleaned } from "./validation/provider/fleet.ts";

type Statuses = Parameters<typeof wasCleaned>[0][number]["status"][];

it.each<[string, Statuses, Parameters<typeof wasCleaned>[1], boolean]>([
  ["never used", ["Initializing", "Ready"], [], true],
  ["in use", ["Ready", "InUse"], [], true],
  ["cleaned after each use", ["Ready", "InUse", "Reset", "Ready", "InUse", "Reset", "Ready"], [], true],
  ["cleaned, with an error meanwhile", ["InUse", "Reset", "Error", "Ready"], [], true],
  ["given to the next tenant uncleaned", ["Ready", "InUse", "Ready"], [], false],
  ["cleaned only the second time", ["InUse", "Error", "Ready", "InUse", "Reset", "Ready"], [], false],
  ["cleaned only after it was ready", ["InUse", "Ready", "Reset", "Ready"], [], false],
  [
    "not clean by its newest record",
    ["InUse", "Reset", "Ready"],
    [
      { sequence: 2, verdict: "not_clean" },
      { sequence: 1, verdict: "clean" },
    ],
    false,
  ],
  [
    "clean by its newest record",
    ["InUse", "Reset", "Ready"],
    [
      { sequence: 1, verdict: "not_clean" },
      { sequence: 2, verdict: "clean" },
    ],
    true,
  ],
])("a machine that was %s", (_, statuses, cleanings, expected) => {
  expect(
    wasCleaned(
      statuses.map((status) => ({ status })),
      cleanings,
    ),
  ).toBe(expected);
});
