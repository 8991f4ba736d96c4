import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { machine } from "./machines.fixture.ts";
import { JUDGED_AT, judge, VERDICTS } from "./verdict-table.ts";

const CODES = Object.keys(VERDICTS).map(Number);
const kind = (at: (typeof JUDGED_AT)[number], status: number, ours = false) =>
  judge(at, machine({ status }), ours).kind;

describe("the verdict table", () => {
  it("has a verdict for each of MAAS's 23 statuses at each place", () => {
    expect(CODES).toEqual(Array.from({ length: 23 }, (_, code) => code));
    for (const row of Object.values(VERDICTS)) expect(Object.keys(row)).toEqual([...JUDGED_AT]);
  });

  it("property: a status that MAAS may invent is an ambiguity, never a guess", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 23, max: 1000 }),
        fc.constantFrom(...JUDGED_AT),
        fc.boolean(),
        (status, at, ours) => {
          expect(judge(at, machine({ status }), ours)).toMatchObject({
            kind: "failed",
            failure: { class: "state_ambiguity", code: "unknown_maas_status" },
          });
        },
      ),
    );
  });

  it("property: nothing destructive is done to a locked machine", () => {
    fc.assert(
      fc.property(fc.constantFrom(...CODES), fc.constantFrom(...JUDGED_AT), (status, at) => {
        const verdict = judge(at, machine({ status, locked: true }), false).kind;
        expect(["act", "abort", "release"]).not.toContain(verdict);
      }),
    );
  });

  it("property: a deployed or deploying machine that is not ours is never adopted, acted on or counted as a failed deploy", () => {
    const before = JUDGED_AT.filter((at) => at !== "deployed" && at !== "recover");
    for (const at of before) for (const status of [6, 9, 10, 11]) expect(kind(at, status)).toBe("failed");
  });

  it("commissions directly what is New or failed commissioning, and nothing else", () => {
    expect(CODES.filter((status) => kind("commission", status, true) === "act")).toEqual([0, 2]);
  });

  it("deploys only from Ready, and from an Allocated of our own", () => {
    expect(CODES.filter((status) => kind("deploy", status, false) === "act")).toEqual([4]);
    expect(CODES.filter((status) => kind("deploy", status, true) === "act")).toEqual([4, 10]);
  });

  it("adopts what this onboarding deployed already, at every stage before", () => {
    for (const at of ["commission", "ready", "configure", "deploy"] as const) {
      expect(kind(at, 6, true)).toBe("adopt");
      expect(kind(at, 9, true)).toBe("adopt");
    }
  });

  it("recovers a failed or hanging deploy back to Ready", () => {
    expect(kind("recover", 11)).toBe("release");
    expect(kind("recover", 9)).toBe("abort");
    expect(kind("recover", 10)).toBe("release");
    expect(kind("recover", 12)).toBe("wait");
    expect(kind("recover", 4)).toBe("go_on");
  });

  it("says why and shows what MAAS said, bounded", () => {
    const seen = machine({ status: 2, statusName: "Failed commissioning", errorDescription: "x".repeat(9000) });
    const verdict = judge("ready", seen, false);
    expect(verdict).toMatchObject({
      failure: {
        class: "pxe_discovery_failure",
        code: "commissioning_failed",
        evidence: { last_maas_status: "Failed commissioning", maas_system_id: "abc123" },
      },
    });
    expect(JSON.stringify(verdict.kind === "failed" ? verdict.failure.evidence : {}).length).toBeLessThan(1500);
  });

  it("takes a machine that MAAS could not power off for a BMC failure", () => {
    expect(judge("deploy", machine({ status: 13 }), true)).toMatchObject({ failure: { class: "bmc_power_failure" } });
  });
});
