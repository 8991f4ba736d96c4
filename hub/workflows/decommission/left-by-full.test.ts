import { describe, expect, it } from "vitest";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { NODE_STATUSES } from "../../../shared/node-status.ts";
import type { ChosenSecret } from "../../db/schema/index.ts";
import { type FullFacts, leftBy, leftoverOf, unprovenErase } from "./left-by-full.ts";

const secret = (outcome: ChosenSecret["outcome"], login: boolean): ChosenSecret => ({
  kind: login ? "bmc_login" : "user_data",
  path: login ? "kv/login" : "kv/user-data",
  login: login ? { id: `id-${outcome}`, selector: "hostname c01", changedAt: "t" } : null,
  version: "1",
  outcome,
  reason: outcome === "kept" ? "somebody changed it" : null,
});
const MACHINES: FullFacts["machine"][] = [
  null,
  "unknown",
  { status: MAAS_STATUS.ready, statusName: "Ready" },
  { status: MAAS_STATUS.disk_erasing, statusName: "Disk erasing" },
];
const SECRETS: (readonly ChosenSecret[] | null)[] = [
  null,
  [],
  (["chosen", "removing", "removed", "kept"] as const).flatMap((one) => [secret(one, true), secret(one, false)]),
];
const ERASES: FullFacts["unprovenErase"][] = [
  { kind: "secure", waivedBy: null },
  { kind: "secure", waivedBy: "ann" },
  null,
];
const ALL: FullFacts[] = NODE_STATUSES.flatMap((node) =>
  [true, false].flatMap((released) =>
    MACHINES.flatMap((machine) =>
      [true, false].flatMap((removeMaasRecord) =>
        ERASES.flatMap((unprovenErase) =>
          ["off", "on", null].flatMap((power) =>
            SECRETS.map((secrets) => ({
              hostname: "c01",
              systemId: "abc123",
              node,
              released,
              machine,
              removeMaasRecord,
              unprovenErase,
              power,
              secrets,
            })),
          ),
        ),
      ),
    ),
  ),
);
const told = (facts: FullFacts) => leftoverOf(leftBy(facts), {});
const past = ALL.filter(
  ({ node, released }) => node === "deleted" || (released && ["retired", "removing"].includes(node)),
);

describe("the erase that nothing proves", () => {
  const GENERATION = 3;
  const of = (erase: string, state: object, status = "retired") =>
    unprovenErase({ node: { generation: GENERATION, status }, input: { erase }, state } as never);

  it("is every erase without a report of MAAS that a person waived, or whose machine is not free", () => {
    const unproven = { kind: "quick", waivedBy: null };
    expect(of("quick", {})).toEqual(unproven);
    for (const machine_free of [GENERATION - 1, null]) expect(of("quick", { machine_free })).toEqual(unproven);
    const waived = { erase_waived: GENERATION, erase_waived_by: "ann" };
    for (const [state, status] of [
      [waived, "retired"],
      [{ ...waived, machine_free: GENERATION }, "deleted"],
    ] as const)
      expect(of("quick", state, status)).toEqual({ kind: "quick", waivedBy: "ann" });
    expect(of("quick", { ...waived, erase_waived: GENERATION - 1 })).toEqual(unproven);
    expect(of("quick", { erase_waived: GENERATION })).toEqual({ kind: "quick", waivedBy: "a person" });
    expect(of("quick", { ...waived, erase_reported: GENERATION })).toBeNull();
    expect(of("quick", { ...waived, erase_reported: GENERATION - 1 })).toEqual({ kind: "quick", waivedBy: "ann" });
    expect(of("quick", { machine_free: GENERATION })).toBeNull();
    expect(of("quick", {}, "deleted")).toBeNull();
    expect(of("none", waived)).toBeNull();
  });
});

describe("what a full decommission leaves", () => {
  it("is nothing before the node is retired, and only the node before the release", () => {
    for (const facts of ALL.filter((one) => !past.includes(one))) {
      const left = leftBy(facts);
      expect(left).toHaveLength(["retired", "removing"].includes(facts.node) ? 1 : 0);
      for (const { what } of left) expect(what).toContain("was not released");
    }
  });

  it("names the node, the machine, the power and the erase after the release", () => {
    expect(past.length).toBeGreaterThan(100);
    for (const facts of past) {
      const { message, nextAction } = told(facts) ?? { message: "", nextAction: "" };
      expect(message).toContain(facts.node === "deleted" ? "is deleted" : "cannot be activated again");
      expect(nextAction.includes("Remove the node")).toBe(facts.node !== "deleted");
      expect(message).toContain("Machine abc123");
      const asked = facts.removeMaasRecord && facts.machine !== null;
      expect(message.includes("although the request asks to delete it")).toBe(asked);
      expect(nextAction.includes("Delete the machine in MAAS")).toBe(asked);
      const off = facts.node === "deleted" || facts.power === "off";
      if (facts.machine !== null)
        expect(message).toContain(off ? "is powered off" : "Nothing proves that the host is off");
      expect(message.includes("the erase of the disks (secure)")).toBe(facts.unprovenErase !== null);
      expect(message.includes("ann decided")).toBe(facts.unprovenErase?.waivedBy === "ann");
    }
  });

  it("names each secret that is not removed, and what to do about it", () => {
    for (const facts of past) {
      const { message, nextAction } = told(facts) ?? { message: "", nextAction: "" };
      if (facts.secrets === null) expect(message).toContain("secrets may still be in the secret store");
      for (const { outcome, login, path } of facts.secrets ?? []) {
        const todo = login === null ? path : login.id;
        if (login !== null) expect(message.includes(login.id)).toBe(outcome !== "removed");
        if (login !== null || outcome !== "removed") expect(nextAction.includes(todo)).toBe(outcome !== "removed");
      }
    }
  });

  it("is the same in the evidence, thing for thing", () => {
    for (const facts of past) {
      const leftover = told(facts);
      expect([leftover?.evidence["left"] ?? []].flat().join(" ")).toBe(leftover?.message);
    }
    expect(leftoverOf([], {})).toBeNull();
  });
});
