import fc from "fast-check";
import { expect, it } from "vitest";
import { buildRecord } from "./sanitization-build.ts";
import { destinationOf } from "./sanitization-destination.ts";
import { anyFacts } from "./sanitization-facts.fixture.ts";
import { DECOMMISSION_MODES } from "./workflow-status.ts";

it("follows from the mode of the operation", () => {
  expect(
    Object.fromEntries([...DECOMMISSION_MODES, "unknown", "onboard"].map((mode) => [mode, destinationOf(mode)])),
  ).toEqual({
    drain: "fleet",
    remove: "operator",
    release: "maas",
    soft_reset: "fleet",
    reimage: "fleet",
    reinstall: "fleet",
    storage_cleanup: "fleet",
    full_decommission: "maas",
    unknown: "unknown",
    onboard: "unknown",
  });
});

it("is in each new record", () => {
  fc.assert(
    fc.property(anyFacts, fc.constantFrom(...DECOMMISSION_MODES, "unknown"), (facts, mode) => {
      const { record } = buildRecord({ ...facts, operation: { ...facts.operation, mode } });
      expect(record.destination).toBe(destinationOf(mode));
    }),
    { numRuns: 50 },
  );
});
