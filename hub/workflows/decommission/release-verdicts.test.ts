import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ruleOf } from "../../../shared/failures.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { machine } from "../machine/machines.fixture.ts";
import { VERDICTS } from "../machine/verdict-table.ts";
import {
  asksWhoOwns,
  cannotDelete,
  cannotPowerCycle,
  judgeRelease,
  RELEASE_STAGES,
  RELEASE_VERDICTS,
  type ReleaseStage,
} from "./release-verdicts.ts";

const CODES = Object.keys(RELEASE_VERDICTS).map(Number);
const judge = (at: ReleaseStage, status: number, ours: boolean, told = false, locked = false) =>
  judgeRelease(at, machine({ status, locked, owner: ours ? "muster" : "somebody" }), { ours, told });
const released = (at: ReleaseStage, ours: boolean, told: boolean, locked = false) =>
  CODES.filter((status) => judge(at, status, ours, told, locked).kind === "release");

describe("the verdicts on a machine during a release", () => {
  it("exist for each of MAAS's 23 statuses at both stages", () => {
    expect(CODES).toEqual(Object.keys(VERDICTS).map(Number));
    for (const row of Object.values(RELEASE_VERDICTS)) expect(Object.keys(row)).toEqual([...RELEASE_STAGES]);
  });

  it("ask MAAS only for releases of Muster's own deployed machines, and after a failed release only once the failure was reported", () => {
    expect(released("release_maas_node", true, false)).toEqual([6]);
    expect(released("release_maas_node", true, true)).toEqual([6, 13, 15]);
    for (const told of [true, false]) {
      expect(released("release_maas_node", false, told)).toEqual([]);
      expect(released("release_maas_node", true, told, true)).toEqual([]);
      expect(released("power_off_maas_node", true, told)).toEqual([]);
    }
  });

  it("adopt a finished release and wait for a release under way, whoever owns the machine", () => {
    const of = (kind: string) => CODES.filter((status) => judge("release_maas_node", status, false).kind === kind);
    expect(of("released")).toEqual([0, 4]);
    expect(of("wait")).toEqual([12, 14]);
  });

  it("allow a power cycle only of Muster's own deployed machine that nobody has locked", () => {
    const codes = (ours: boolean, locked: boolean) =>
      CODES.map((status) => cannotPowerCycle(machine({ status, locked }), ours)?.code ?? null);
    const others = CODES.map((status) => (status === MAAS_STATUS.deployed ? null : "unexpected_maas_status"));
    const with6 = (code: string) => others.map((other) => other ?? code);
    expect(codes(true, false)).toEqual(others);
    expect(codes(true, true)).toEqual(with6("machine_locked"));
    expect(codes(false, false)).toEqual(with6("machine_owned_by_other"));
    expect(codes(false, true)).toEqual(with6("machine_owned_by_other"));
  });

  it("allow a power-off only of a free machine", () => {
    expect(CODES.filter((status) => judge("power_off_maas_node", status, true).kind === "released")).toEqual([0, 4]);
  });

  it("depend on the machine's owner exactly where `asksWhoOwns` says so", () => {
    for (const at of RELEASE_STAGES)
      for (const status of CODES) {
        const differs = [true, false].some(
          (told) => judge(at, status, true, told).kind !== judge(at, status, false, told).kind,
        );
        expect(asksWhoOwns(at, status), `${at} ${status}`).toBe(differs);
      }
  });

  it("property: an unknown MAAS status is an ambiguity", () => {
    fc.assert(
      fc.property(fc.integer({ min: 23, max: 1000 }), fc.constantFrom(...RELEASE_STAGES), (status, at) => {
        expect(judge(at, status, true, true)).toMatchObject({
          kind: "failed",
          accepted: false,
          failure: { class: "state_ambiguity", code: "unknown_maas_status" },
        });
      }),
    );
  });

  it("allow to delete a machine only if it is New or Ready, unowned and unlocked", () => {
    const may = CODES.filter((status) => cannotDelete(machine({ status, owner: null })) === null);
    expect(may).toEqual([MAAS_STATUS.new, MAAS_STATUS.ready]);
    for (const status of CODES) {
      expect(cannotDelete(machine({ status, owner: "somebody" }))?.class, String(status)).toBe("state_ambiguity");
      expect(cannotDelete(machine({ status, owner: null, locked: true }))?.code).toBe("machine_locked");
    }
  });

  it("name in each failure the verb that the failure's class recommends", () => {
    for (const at of RELEASE_STAGES)
      for (const status of CODES)
        for (const [ours, locked] of [
          [true, false],
          [true, true],
          [false, false],
        ] as const) {
          const verdict = judge(at, status, ours, false, locked);
          if (verdict.kind !== "failed") continue;
          const { nextVerb, endsAs } = ruleOf(verdict.failure);
          expect(verdict.failure.message, `${at} ${status}`).toContain(nextVerb);
          expect(endsAs).toBe("failed_manual_intervention");
          expect(verdict.failure.evidence).toMatchObject({ last_maas_status_code: status });
        }
  });
});
