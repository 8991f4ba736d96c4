import { describe, expect, it } from "vitest";
import { expectedOf } from "./expected.ts";
import type { Repair } from "./repair-questions.ts";
import { firstVerb, type RepairVerb, whyNot } from "./repair-verbs.ts";

const VERBS: readonly RepairVerb[] = ["request", "withdraw", "claim", "report", "validate", "close", "escalate"];
const you = (name: string, role: "operator" | "repair") => ({
  ...{ name, role },
  rights: role === "operator" ? (["operate_nodes", "repair_nodes"] as const) : (["repair_nodes"] as const),
});
const ann = { ...you("ann", "operator"), rights: [...you("ann", "operator").rights] };
const team = { ...you("fixers", "repair"), rights: [...you("fixers", "repair").rights] };

/** What the hub names for a full repair in each state. */
const NAMED: Readonly<Record<Repair["state"], readonly string[]>> = {
  reported: ["request-repair", "report-repair", "escalate-repair"],
  requested: ["withdraw-repair-request", "claim-repair", "escalate-repair"],
  claimed: ["report-repair", "escalate-repair"],
  repaired: ["validate-repair", "escalate-repair", "close-repair"],
  failed: ["request-repair", "report-repair", "escalate-repair"],
  escalated: ["request-repair", "report-repair"],
  closed: [],
  abandoned: [],
};
const CHECK = { code: "not_cleaned", message: "it was not cleaned", next_action: "clean it" };
const of = (state: Repair["state"], more: Partial<Repair> = {}): Repair =>
  ({
    ...{ state, mode: "full", verbs: NAMED[state], claimed_by: "fixers", repair_tenant: null },
    ...{ failed_checks: [], held_back: null, outcome: "failed" },
    ...more,
  }) as Repair;
const given = (one: Repair, person = ann) => VERBS.filter((verb) => whyNot(verb, one, person) === null);

describe("the verbs of a repair", () => {
  it.each([
    ["reported", ["request", "report", "escalate"]],
    ["requested", ["withdraw", "claim", "escalate"]],
    ["claimed", ["report", "escalate"]],
    ["repaired", ["validate", "close", "escalate"]],
    ["failed", ["request", "report", "escalate"]],
    ["escalated", ["request", "report"]],
    ["closed", []],
    ["abandoned", []],
  ] as const)("of a case that is %s are %j for an operator", (state, verbs) => {
    expect(given(of(state))).toEqual(verbs);
  });

  it("let a repair team claim, extend and report its own attempt, and no other", () => {
    expect(whyNot("claim", of("claimed"), team)).toBe(null);
    expect(whyNot("report", of("claimed"), team)).toBe(null);
    expect(whyNot("report", of("failed"), team)).toBe("Only an operator reports a repair that nobody has claimed.");
    expect(whyNot("claim", of("claimed"), ann)).toBe("fixers has claimed the machine, and alone extends the claim.");
    expect(whyNot("claim", of("claimed", { claimed_by: "ann" }), ann)).toBe(null);
  });

  it("say why a machine stays in repair", () => {
    const one = of("repaired", { failed_checks: [CHECK] });
    expect(whyNot("close", one, ann)).toBe("The machine has not passed all checks: it was not cleaned.");
    expect([firstVerb(one), firstVerb(of("repaired")), firstVerb(of("closed"))]).toEqual(["validate", "close", null]);
  });
});

it("says what is expected next of every open case, and nothing of an ended one", () => {
  const titles = (["reported", "requested", "claimed", "repaired", "failed", "escalated"] as const).map(
    (state) => expectedOf(of(state))?.title,
  );
  expect(new Set(titles).size).toBe(6);
  expect([expectedOf(of("closed")), expectedOf(of("abandoned"))]).toEqual([null, null]);
  expect(expectedOf(of("reported", { held_back: "breaker" }))?.next).toContain("reset the breaker");
});
