import { describe, expect, it } from "vitest";
import { MAAS_ERRORS } from "../../maas/port.ts";
import { afterCreate, judgeNewcomers, type Newcomer, nextPowerStep, SETTLE_SECONDS } from "./discovery-rules.ts";

describe("the next step after a create that returned no machine", () => {
  const asked = { httpStatus: 400, fields: [] as string[], nameRefusals: 0, unusable: 0 };
  const refused = (fields: string[], nameRefusals = 0) =>
    afterCreate({ ...asked, code: "rejected_input", fields, nameRefusals });

  it("is a discovery if MAAS refuses only data that a discovery provides", () => {
    expect(refused(["power_type"])).toBe("discover");
    expect(refused(["mac_addresses", "power_type"])).toBe("discover");
    expect(refused(["power_parameters_power_address"])).toBe("discover");
    for (const fields of [[], ["__all__"], ["architecture"], ["mac_addresses", "architecture"], ["domain"]])
      expect(refused(fields), fields.join()).toBe("give_up");
  });

  it("is another search, up to three times, if the name is taken or the answer holds no machine", () => {
    for (const times of [0, 1, 2]) expect(refused(["hostname"], times)).toBe("look_again");
    expect(refused(["hostname", "power_type"], 3)).toBe("give_up");
    const unusable = (times: number) =>
      afterCreate({ ...asked, code: "bad_answer", httpStatus: null, unusable: times });
    for (const times of [0, 1, 2]) expect(unusable(times)).toBe("look_again");
    expect(unusable(3)).toBe("discover");
  });

  it("is never a discovery while MAAS is unavailable or has an error", () => {
    for (const code of MAAS_ERRORS.filter((one) => one !== "rejected_input"))
      expect(afterCreate({ ...asked, code, httpStatus: 500, unusable: 9 }), code).toBe("give_up");
  });
});

describe("the verdict on machines that appeared after the host's boot", () => {
  const settled: Newcomer = { systemId: "aaa", status: 0, bmc: "", seenSeconds: SETTLE_SECONDS };
  const other = { ...settled, systemId: "bbb" };

  it("claims a machine only if exactly one appeared", () => {
    expect(judgeNewcomers([], 0)).toEqual({ kind: "nothing_yet" });
    expect(judgeNewcomers([settled], 0)).toEqual({ kind: "claim", systemId: "aaa" });
    expect(judgeNewcomers([settled, other], 0)).toEqual({ kind: "ambiguous", newcomers: [settled, other] });
    expect(judgeNewcomers([settled, { ...other, status: null }], 0).kind).toBe("ambiguous");
    expect(judgeNewcomers([{ ...settled, status: null }], 0).kind).toBe("ambiguous");
  });

  it("claims no machine that is or may be another host", () => {
    for (const bmc of ["10.0.0.9", "https://10.0.0.9", "fd00::9", "[FD00::9]"])
      expect(judgeNewcomers([{ ...settled, bmc }], 0), bmc).toEqual({ kind: "nothing_yet" });
    expect(judgeNewcomers([settled, { ...other, bmc: "10.0.0.9" }], 0)).toEqual({ kind: "claim", systemId: "aaa" });
    expect(judgeNewcomers([{ ...settled, bmc: "bmc-7.example.net" }], 0).kind).toBe("ambiguous");
    expect(judgeNewcomers([settled], 1)).toEqual({ kind: "shared", systemId: "aaa" });
  });

  it("waits until MAAS can know the BMC, and claims no machine that somebody already uses", () => {
    const settling = { kind: "settling", systemIds: ["aaa"] };
    expect(judgeNewcomers([{ ...settled, seenSeconds: SETTLE_SECONDS - 1 }], 0)).toEqual(settling);
    expect(judgeNewcomers([{ ...settled, seenSeconds: 0 }, other], 0)).toEqual(settling);
    expect(judgeNewcomers([{ ...settled, status: 1, seenSeconds: 9999 }], 0)).toEqual(settling);
    for (const status of [2, 4, 6, 10]) expect(judgeNewcomers([{ ...settled, status }], 0).kind).toBe("nothing_yet");
  });
});

it("power-cycles a host by steps that another hub can repeat without a second power cycle", () => {
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
