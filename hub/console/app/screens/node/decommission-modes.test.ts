import { expect, it } from "vitest";
import { bodyOf, faultOf } from "./decommission-modes.ts";

it("takes an empty time to leave as a fault and not as no time", () => {
  for (const drainMinutes of ["", "-", "ten", 1.5, -1, 1441, Number.NaN])
    expect(faultOf("drain", { drainMinutes }), String(drainMinutes)).toContain("0 to 1440");
  for (const drainMinutes of [0, 60, 1440]) expect(faultOf("drain", { drainMinutes })).toBeUndefined();
  expect(faultOf("reimage", { drainMinutes: "" })).toBeUndefined();
});

it("sends the time to leave in seconds", () => {
  const choice = { erase: "secure", scope: "all", force: false, removeRecord: false, drainMinutes: 5 } as const;
  expect(bodyOf("drain", { ...choice, reason: "rack work" })).toMatchObject({ deadline_seconds: 300 });
});
