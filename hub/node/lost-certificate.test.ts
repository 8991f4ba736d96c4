import { describe, expect, it } from "vitest";
import { type LostFacts, lostVerdict } from "./lost-certificate.ts";

const NAMES = ["inLostTime", "byCaInForce", "generationSince", "revoked", "laterInUse"] as const;
const ALL = Array.from({ length: 2 ** NAMES.length }, (_, bits) =>
  Object.fromEntries(NAMES.map((name, at) => [name, (bits & (1 << at)) !== 0])),
) as unknown as LostFacts[];

describe("lostVerdict", () => {
  it("accepts only certificates of the lost time by the CA in force, of a node that nobody has revoked or provisioned again", () => {
    const accepted = ALL.filter((facts) => lostVerdict(facts) === "accepted");
    expect(accepted).toEqual([
      { inLostTime: true, byCaInForce: true, generationSince: false, revoked: false, laterInUse: false },
    ]);
  });

  it("treats an older certificate of the lost time as replaced", () => {
    const replaced = ALL.filter((facts) => lostVerdict(facts) === "replaced");
    expect(replaced).toEqual([
      { inLostTime: true, byCaInForce: true, generationSince: false, revoked: false, laterInUse: true },
    ]);
  });
});
