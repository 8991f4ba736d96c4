import fc from "fast-check";
import { expect, it } from "vitest";
import { Secret } from "../../shared/secret.ts";
import { rotated, signingKeys } from "./webhook-secret.ts";

const NOW = new Date("2026-01-01T00:00:00Z");
const later = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);
const keys = (data: Readonly<Record<string, string>>, at: Date) => signingKeys(data, at).map((key) => key.reveal());

it("signs with both secrets during the overlap, and later with the new one only", () => {
  const kept = rotated({ secret: "a" }, new Secret("b"), 60, NOW);
  expect(keys(kept, later(59))).toEqual(["b", "a"]);
  expect(keys(kept, later(60))).toEqual(["b"]);
});

it("property: a repeated rotation never makes a secret its own predecessor, and never lengthens the overlap", () => {
  const seconds = fc.integer({ min: 0, max: 604_800 });
  fc.assert(
    fc.property(seconds, seconds, (first, again) => {
      const kept = rotated(rotated({ secret: "a" }, new Secret("b"), first, NOW), new Secret("b"), again, NOW);
      const overlap = Math.min(first, again);
      expect(kept).toEqual({ secret: "b", previous: "a", previous_until: later(overlap).toISOString() });
    }),
  );
  expect(rotated({ secret: "a" }, new Secret("a"), 60, NOW)).toEqual({ secret: "a" });
});
