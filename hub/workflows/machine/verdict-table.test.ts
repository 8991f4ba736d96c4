import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ruleOf } from "../../../shared/failures.ts";
import { ONBOARDING_STAGES } from "../../../shared/workflow-status.ts";
import { machine } from "./machines.fixture.ts";
import { JUDGED_AT, type Judging, judge, PLACE_OF, VERDICTS } from "./verdict-table.ts";

const CODES = Object.keys(VERDICTS).map(Number);
const JUDGING = [
  ...ONBOARDING_STAGES.filter((stage): stage is Exclude<Judging, "compensation"> => PLACE_OF[stage] !== "untouched"),
  "compensation",
] as const satisfies readonly Judging[];
const kind = (at: Judging, status: number, ours = false) => judge(at, machine({ status }), ours).kind;

describe("the verdict table", () => {
  it("has a verdict for each of MAAS's 23 statuses at each point of a workflow", () => {
    expect(CODES).toEqual(Array.from({ length: 23 }, (_, code) => code));
    for (const row of Object.values(VERDICTS)) expect(Object.keys(row)).toEqual([...JUDGED_AT]);
  });

  it("property: calls an unknown MAAS status an ambiguity", () => {
    fc.assert(
      fc.property(fc.integer({ min: 23, max: 1000 }), fc.constantFrom(...JUDGING), fc.boolean(), (status, at, ours) => {
        expect(judge(at, machine({ status }), ours)).toMatchObject({
          kind: "failed",
          failure: { class: "state_ambiguity", code: "unknown_maas_status" },
        });
      }),
    );
  });

  it("property: never acts on, aborts or releases a locked machine", () => {
    fc.assert(
      fc.property(fc.constantFrom(...CODES), fc.constantFrom(...JUDGING), (status, at) => {
        const verdict = judge(at, machine({ status, locked: true }), false).kind;
        expect(["act", "abort", "release"]).not.toContain(verdict);
      }),
    );
  });

  it("property: fails for a deployed, deploying or allocated machine that the workflow did not deploy", () => {
    for (const at of JUDGING) for (const status of [6, 9, 10, 11]) expect(kind(at, status), at).toBe("failed");
  });

  it("commissions only a machine that is New, failed commissioning or failed its tests", () => {
    expect(CODES.filter((status) => kind("commission_node", status, true) === "act")).toEqual([0, 2, 22]);
  });

  it("calls failed tests a hardware fault, and recommends `resume`", () => {
    const verdict = judge("wait_for_ready", machine({ status: 22 }), false);
    if (verdict.kind !== "failed") throw new Error(verdict.kind);
    expect(verdict.failure).toMatchObject({ class: "hardware_mismatch", code: "testing_failed" });
    expect(ruleOf(verdict.failure)).toMatchObject({ retry: "never", nextVerb: "resume" });
    expect(ruleOf(verdict.failure).nextAction).toMatch(/override.*tested again/);
  });

  it("names the owner of a machine whose status the workflow does not explain", () => {
    for (const status of [3, 5, 10, 8, 16])
      expect(judge("commission_node", machine({ status, owner: "bob" }), false), String(status)).toMatchObject({
        failure: { message: expect.stringContaining("bob owns it"), evidence: { maas_owner: "bob" } },
      });
  });

  it("deploys only a Ready machine, or an Allocated machine of its own", () => {
    expect(CODES.filter((status) => kind("deploy_via_maas", status, false) === "act")).toEqual([4]);
    expect(CODES.filter((status) => kind("deploy_via_maas", status, true) === "act")).toEqual([4, 10]);
  });

  it("adopts a machine that the workflow has already deployed, at every earlier stage", () => {
    for (const at of ["commission_node", "wait_for_ready", "configure_storage", "deploy_via_maas"] as const) {
      expect(kind(at, 6, true)).toBe("adopt");
      expect(kind(at, 9, true)).toBe("adopt");
    }
  });

  it("recovers a failed or hanging deploy back to Ready", () => {
    for (const at of ["recover_for_datasource_retry", "compensation"] as const) {
      expect(kind(at, 11, true)).toBe("release");
      expect(kind(at, 9, true)).toBe("abort");
      expect(kind(at, 10, true)).toBe("release");
      expect(kind(at, 12, true)).toBe("wait");
      expect(kind(at, 4)).toBe("go_on");
    }
  });

  it("accepts after the deploy only a machine that is Deployed and the workflow's own", () => {
    const serving = JUDGING.filter((at) => at !== "compensation" && ["seeding", "serving"].includes(PLACE_OF[at]));
    expect(serving).toHaveLength(4);
    for (const at of serving)
      for (const status of CODES) expect(kind(at, status, true)).toMatch(status === 6 ? /^(go_on|act)$/ : /^failed$/);
    expect(judge("wait_for_agent_enrollment", machine({ status: 6, owner: "somebody" }), false)).toMatchObject({
      failure: {
        class: "state_ambiguity",
        code: "machine_owned_by_other",
        message: expect.stringContaining("somebody"),
      },
    });
  });

  it("returns only the eight kinds of verdict that stages handle", () => {
    const kinds = new Set(
      JUDGING.flatMap((at) => CODES.flatMap((code) => [kind(at, code, true), kind(at, code, false)])),
    );
    expect([...kinds].sort()).toEqual(["abort", "act", "adopt", "deploy_failed", "failed", "go_on", "release", "wait"]);
  });

  it("shows MAAS's reason in the evidence, with a length limit", () => {
    const seen = machine({ status: 2, statusName: "Failed commissioning", errorDescription: "x".repeat(9000) });
    const verdict = judge("wait_for_ready", seen, false);
    expect(verdict).toMatchObject({
      failure: {
        class: "pxe_discovery_failure",
        code: "commissioning_failed",
        evidence: { last_maas_status: "Failed commissioning", maas_system_id: "abc123" },
      },
    });
    expect(JSON.stringify(verdict.kind === "failed" ? verdict.failure.evidence : {}).length).toBeLessThan(1500);
  });

  it("recommends for each ambiguous state a verb that reads the machine again", () => {
    for (const stage of JUDGING) {
      for (const ours of [true, false]) {
        for (const status of CODES) {
          const verdict = judge(stage, machine({ status, owner: ours ? "muster" : null }), ours);
          if (verdict.kind !== "failed" || verdict.failure.class !== "state_ambiguity") continue;
          const { nextVerb } = ruleOf(verdict.failure);
          expect(nextVerb, `${stage} ${status}`).toBe("rerun");
          expect(verdict.failure.message, `${stage} ${status}`).toContain(nextVerb);
        }
      }
    }
    expect(judge("commission_node", machine({ status: 0, locked: true }), false)).toMatchObject({
      failure: { code: "machine_locked", message: expect.stringContaining("resume") },
    });
  });

  it("reports a BMC failure if MAAS could not power the machine off", () => {
    expect(judge("deploy_via_maas", machine({ status: 13 }), true)).toMatchObject({
      failure: { class: "bmc_power_failure" },
    });
  });
});
