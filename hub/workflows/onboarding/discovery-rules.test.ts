import { describe, expect, it } from "vitest";
import { MAAS_ERRORS } from "../../maas/port.ts";
import { afterCreate, judgeNewcomers, type Newcomer, nextPowerStep, SETTLE_SECONDS } from "./discovery-rules.ts";

describe("what follows a create that gave no machine", () => {
  const asked = { httpStatus: 400, fields: [] as string[], nameRefusals: 0, unusable: 0 };
  const refused = (fields: string[], nameRefusals = 0) =>
    afterCreate({ ...asked, code: "rejected_input", fields, nameRefusals });

  it("is a discovery where MAAS refuses what a discovery makes good, and nothing else", () => {
    expect(refused(["power_type"])).toBe("discover");
    expect(refused(["mac_addresses", "power_type"])).toBe("discover");
    expect(refused(["power_parameters_power_address"])).toBe("discover");
    for (const fields of [[], ["__all__"], ["architecture"], ["mac_addresses", "architecture"], ["domain"]])
      expect(refused(fields), fields.join()).toBe("give_up");
  });

  it("is another look where the name is taken or no machine was in the answer, three times", () => {
    for (const times of [0, 1, 2]) expect(refused(["hostname"], times)).toBe("look_again");
    expect(refused(["hostname", "power_type"], 3)).toBe("give_up");
    const unusable = (times: number) =>
      afterCreate({ ...asked, code: "bad_answer", httpStatus: null, unusable: times });
    for (const times of [0, 1, 2]) expect(unusable(times)).toBe("look_again");
    expect(unusable(3)).toBe("discover");
  });

  it("is the stage's own wait while MAAS is away or at fault: nothing is booted for that", () => {
    for (const code of MAAS_ERRORS.filter((one) => one !== "rejected_input"))
      expect(afterCreate({ ...asked, code, httpStatus: 500, unusable: 9 }), code).toBe("give_up");
  });
});

describe("what is made of machines that are new since the boot", () => {
  const settled: Newcomer = { systemId: "aaa", status: 0, bmc: "", seenSeconds: SETTLE_SECONDS };
  const other = { ...settled, systemId: "bbb" };

  it("claims exactly one", () => {
    expect(judgeNewcomers([], 0)).toEqual({ kind: "nothing_yet" });
    expect(judgeNewcomers([settled], 0)).toEqual({ kind: "claim", systemId: "aaa" });
    expect(judgeNewcomers([settled, other], 0)).toEqual({ kind: "ambiguous", newcomers: [settled, other] });
    expect(judgeNewcomers([settled, { ...other, status: null }], 0).kind).toBe("ambiguous");
    expect(judgeNewcomers([{ ...settled, status: null }], 0).kind).toBe("ambiguous");
  });

  it("takes none that is another host's, or may be", () => {
    for (const bmc of ["10.0.0.9", "https://10.0.0.9", "fd00::9", "[FD00::9]"])
      expect(judgeNewcomers([{ ...settled, bmc }], 0), bmc).toEqual({ kind: "nothing_yet" });
    expect(judgeNewcomers([settled, { ...other, bmc: "10.0.0.9" }], 0)).toEqual({ kind: "claim", systemId: "aaa" });
    expect(judgeNewcomers([{ ...settled, bmc: "bmc-7.example.net" }], 0).kind).toBe("ambiguous");
    expect(judgeNewcomers([settled], 1)).toEqual({ kind: "shared", systemId: "aaa" });
  });

  it("lets MAAS find out the BMC first, and takes none that somebody has gone on with", () => {
    const settling = { kind: "settling", systemIds: ["aaa"] };
    expect(judgeNewcomers([{ ...settled, seenSeconds: SETTLE_SECONDS - 1 }], 0)).toEqual(settling);
    expect(judgeNewcomers([{ ...settled, seenSeconds: 0 }, other], 0)).toEqual(settling);
    expect(judgeNewcomers([{ ...settled, status: 1, seenSeconds: 9999 }], 0)).toEqual(settling);
    for (const status of [2, 4, 6, 10]) expect(judgeNewcomers([{ ...settled, status }], 0).kind).toBe("nothing_yet");
  });
});

it("cycles power by steps, each of which may be repeated by another hub without cycling twice", () => {
  const steps = [true, false].flatMap((offSeen) =>
    (["on", "off", "changing"] as const).map((power) => [offSeen, power, nextPowerStep({ offSeen, power })]),
  );
  expect(steps).toEqual([
    [true, "on", "booted"],
    [true, "off", "boot"],
    [true, "changing", "wait"],
    [false, "on", "switch_off"],
    [false, "off", "note_off"],
    [false, "changing", "wait"],
  ]);
});
