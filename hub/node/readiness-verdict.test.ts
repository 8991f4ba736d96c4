import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Bars, NOT_OBSERVED } from "../../shared/condition-types.ts";
import { FLAPPING } from "../../shared/flapping.ts";
import type { ReadinessGroup, ReadinessRequirement } from "../../shared/readiness-policy.ts";
import { barredBy, type ConditionFacts, type ReadinessFacts, readinessOf, toldLacking } from "./readiness-verdict.ts";

const HOUR = 3_600;
const at = (hour: number): Date => new Date(Date.UTC(2026, 0, 1, hour));
const FACTS: ReadinessFacts = {
  policy: [],
  host: { networkOwnedBy: "muster", runsAgent: true },
  generation: 2,
  begunAt: at(0),
  now: at(12),
};
const condition = (type: string, more: Partial<ConditionFacts> = {}): ConditionFacts => ({
  type,
  status: "True",
  reason: "Fine",
  generation: 2,
  expiresAt: null,
  receivedAt: at(11),
  changedAt: at(3),
  flappingSince: null,
  stale: false,
  ...more,
});
const OWN = ["agent.connected", "agent.healthy", "os.booted", "hardware.sku"].map((type) => condition(type));
const asks = (type: string, more: Partial<ReadinessRequirement> = {}): ReadinessRequirement => ({
  type,
  status: "True",
  max_age_seconds: null,
  deadline_seconds: null,
  ...more,
});
const judged = (policy: ReadinessGroup[], conditions: readonly ConditionFacts[]) =>
  readinessOf({ ...FACTS, policy }, [...OWN, ...conditions]);

describe("a requirement", () => {
  const STATUSES = ["True", "False", "Unknown"] as const;
  const REPORTED = STATUSES.flatMap((status) =>
    [11, 1].flatMap((hour) => [false, true].map((stale) => ({ status, hour, stale }))),
  );
  const cellsOf = (requirement: Partial<ReadinessRequirement>) =>
    REPORTED.map(({ status, hour, stale }) => {
      const said = condition("t.t", { status, stale, receivedAt: at(hour), expiresAt: stale ? at(5) : null });
      const { ready, lacking } = judged([{ all: [asks("t.t", requirement)] }], [said]);
      expect(ready).toBe(lacking.length === 0);
      return lacking[0] === undefined ? "met" : `${lacking[0].kind} since ${lacking[0].since.getUTCHours()}`;
    });

  it("is decided for each report of the present generation: status, expiry and age, in this order", () => {
    const [stale, wrong, old] = ["stale since 5", "wrong_status since 3", "too_old since 3"];
    //                      True new      True old      False new     False old     Unknown new   Unknown old
    const TABLE: [Partial<ReadinessRequirement>, (string | undefined)[]][] = [
      [{ status: "True" }, ["met", stale, "met", stale, wrong, stale, wrong, stale, wrong, stale, wrong, stale]],
      [{ status: "False" }, [wrong, stale, wrong, stale, "met", stale, "met", stale, wrong, stale, wrong, stale]],
      [
        { status: "True", max_age_seconds: 2 * HOUR },
        ["met", stale, old, stale, wrong, stale, wrong, stale, wrong, stale, wrong, stale],
      ],
      [
        { status: "False", max_age_seconds: 2 * HOUR },
        [wrong, stale, wrong, stale, "met", stale, old, stale, wrong, stale, wrong, stale],
      ],
    ];
    for (const [requirement, cells] of TABLE) expect(cellsOf(requirement), JSON.stringify(requirement)).toEqual(cells);
  });

  it.each([
    ["no report", undefined, null, { kind: "missing", since: at(0), until: null }],
    ["no report", undefined, 13 * HOUR, { kind: "missing", since: at(0), until: at(13) }],
    ["no report", undefined, 12 * HOUR, { kind: "overdue", since: at(12), until: null }],
    ["no report", undefined, 4 * HOUR, { kind: "overdue", since: at(4), until: null }],
    ["an old report", 1, null, { kind: "older_generation", since: at(0), until: null }],
    ["an old report", 1, 13 * HOUR, { kind: "older_generation", since: at(0), until: at(13) }],
    ["an old report", 1, 4 * HOUR, { kind: "overdue", since: at(4), until: null }],
    ["a report of a later generation", 3, null, { kind: "older_generation", since: at(0), until: null }],
    ["a report", 2, 4 * HOUR, undefined],
  ])(
    "without a report of the present generation waits until its deadline: %s, %s, %s",
    (_what, generation, deadline, lack) => {
      const said = generation === undefined ? [] : [condition("t.t", { generation })];
      const { lacking } = judged([{ all: [asks("t.t", { deadline_seconds: deadline })] }], said);
      expect(lacking[0]).toEqual(lack === undefined ? undefined : expect.objectContaining(lack));
    },
  );

  it("reaches the end of its age at the exact moment", () => {
    const met = (receivedAt: Date) =>
      judged([{ all: [asks("t.t", { max_age_seconds: HOUR })] }], [condition("t.t", { receivedAt })]).ready;
    expect(met(at(11))).toBe(false);
    expect(met(new Date(at(11).getTime() + 1))).toBe(true);
  });
});

describe("a policy", () => {
  const BOTH = [asks("a.a"), asks("b.b")];
  const lackingOf = (policy: ReadinessGroup[], met: readonly string[]) =>
    judged(
      policy,
      met.map((type) => condition(type)),
    ).lacking.map(({ type, group, of }) => `${group} ${of} ${type}`);

  it.each([
    [[], ["0 all a.a", "0 all b.b"], ["0 any a.a", "0 any b.b"]],
    [["a.a"], ["0 all b.b"], []],
    [["b.b"], ["0 all a.a"], []],
    [["a.a", "b.b"], [], []],
  ])("of one group is met by the conditions %j", (met, all, any) => {
    expect(lackingOf([{ all: BOTH }], met)).toEqual(all);
    expect(lackingOf([{ any: BOTH }], met)).toEqual(any);
  });

  it("needs each of its groups, and Muster's own rules hold besides", () => {
    const policy = [{ any: BOTH }, { all: [asks("c.c")] }];
    expect(lackingOf(policy, ["a.a"])).toEqual(["1 all c.c"]);
    expect(lackingOf(policy, ["c.c"])).toEqual(["0 any a.a", "0 any b.b"]);
    expect(lackingOf(policy, ["b.b", "c.c"])).toEqual([]);
    const { ready, lacking } = readinessOf(FACTS, OWN.slice(1));
    expect(ready).toBe(false);
    expect(lacking).toMatchObject([{ type: "agent.connected", kind: "missing", group: null, of: null, said: null }]);
  });

  it("gives one verdict for the conditions in any order", () => {
    const requirement = fc.record({
      type: fc.constantFrom("a.a", "b.b", "os.booted"),
      status: fc.constantFrom<("True" | "False")[]>("True", "False"),
      max_age_seconds: fc.constantFrom(null, HOUR, 24 * HOUR),
      deadline_seconds: fc.constantFrom(null, HOUR, 24 * HOUR),
    });
    const list = fc.array(requirement, { minLength: 1, maxLength: 3 });
    const policies = fc.array(fc.oneof(fc.record({ all: list }), fc.record({ any: list })), { maxLength: 3 });
    const said = fc.record({
      status: fc.constantFrom<ConditionFacts["status"][]>("True", "False", "Unknown"),
      generation: fc.constantFrom(1, 2),
      stale: fc.boolean(),
      receivedAt: fc.constantFrom(at(1), at(11), at(12)),
    });
    const all = fc.array(fc.option(said), { minLength: 5, maxLength: 5 }).map((each) =>
      ["a.a", "b.b", "os.booted", "agent.connected", "agent.healthy", "hardware.sku"].flatMap((type, index) => {
        const one = each[index];
        return one === null || one === undefined ? [] : [condition(type, one)];
      }),
    );
    fc.assert(
      fc.property(
        policies,
        all.chain((one) => fc.tuple(fc.constant(one), fc.shuffledSubarray(one, { minLength: one.length }))),
        (policy, [one, other]) => {
          const verdict = readinessOf({ ...FACTS, policy }, one);
          expect(readinessOf({ ...FACTS, policy }, other)).toEqual(verdict);
          expect(verdict.ready).toBe(verdict.lacking.length === 0);
          for (const lack of verdict.lacking) {
            expect(toldLacking(lack)).toContain(lack.type);
            expect(lack.nextAction).not.toBe("");
          }
        },
      ),
    );
  });
});

describe("a condition that flaps", () => {
  const now = at(12);
  const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000);
  const flapping = fc.record({
    status: fc.constantFrom<ConditionFacts["status"][]>("True", "False", "Unknown"),
    changedAt: fc.integer({ min: 0, max: 2 * FLAPPING.holdSeconds }).map(ago),
    stale: fc.boolean(),
    flappingSince: fc.constantFrom(null, at(11)),
  });

  it("property: is never enough while it is younger than the hold time, and never better or later than without damping", () => {
    fc.assert(
      fc.property(flapping, fc.constantFrom("True", "False"), (more, status) => {
        for (const type of ["t.t", "agent.healthy"]) {
          const policy = type === "t.t" ? [{ all: [asks(type, { status })] }] : [];
          const of = (one: Partial<ConditionFacts>) =>
            readinessOf({ ...FACTS, policy }, [...OWN.filter((own) => own.type !== type), condition(type, one)]);
          const [damped, plain] = [of(more), of({ ...more, flappingSince: null })];
          if (!plain.ready) expect(damped).toEqual(plain);
          const young = more.flappingSince !== null && ago(FLAPPING.holdSeconds) < more.changedAt;
          if (plain.ready) expect(damped.ready).toBe(!young);
          const until = new Date(more.changedAt.getTime() + FLAPPING.holdSeconds * 1000);
          if (plain.ready && young)
            expect(damped.lacking).toMatchObject([{ type, kind: "flapping", since: more.flappingSince, until }]);
        }
      }),
    );
  });
});

describe("Muster's own rule about a condition", () => {
  const CASES = [
    undefined,
    condition("t", { generation: 1 }),
    ...(["True", "False", "Unknown"] as const).flatMap((status) =>
      [false, true].map((stale) => condition("t", { status, stale })),
    ),
  ];
  const told = (one: ConditionFacts | undefined) =>
    one === undefined ? "missing" : one.generation !== 2 ? "old" : one.stale ? `stale ${one.status}` : one.status;
  const letThrough = (bars: Bars) => CASES.filter((one) => barredBy(bars, one, FACTS) === null).map(told);

  it("bars work except in the statuses that it allows; stale counts as Unknown, and Unknown bars", () => {
    expect(letThrough("missing_or_not_true")).toEqual(["True"]);
    expect(letThrough("not_true")).toEqual(["missing", "old", "True"]);
    for (const bars of ["warns", "never"] as const) expect(letThrough(bars)).toEqual(CASES.map(told));
  });

  it("tolerates a reason, whatever the status is", () => {
    const roce = (reason: string) =>
      readinessOf(FACTS, [...OWN, condition("network.roce", { status: "False", reason })]);
    expect(roce("MissingButAllowed").ready).toBe(true);
    const gpu = (status: "Unknown" | "False", reason: string) =>
      readinessOf(FACTS, [...OWN, condition("health.gpu", { status, reason })]).lacking.map(({ type }) => type);
    expect([gpu("Unknown", NOT_OBSERVED), gpu("Unknown", "Unreadable"), gpu("False", "GpuNeedsRepair")]).toEqual([
      [],
      ["health.gpu"],
      ["health.gpu"],
    ]);
    const sku = (generation: number) =>
      readinessOf(FACTS, [
        ...OWN.slice(0, 3),
        condition("hardware.sku", { status: "Unknown", reason: NOT_OBSERVED, generation }),
      ]);
    expect(sku(2).ready).toBe(true);
    expect(sku(1).lacking, "of an earlier generation").toMatchObject([
      { type: "hardware.sku", kind: "older_generation" },
    ]);
    expect(roce("AddressesMissing").lacking).toMatchObject([{ type: "network.roce", kind: "wrong_status" }]);
  });
});
