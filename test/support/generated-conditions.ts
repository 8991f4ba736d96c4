import fc from "fast-check";
import { CONDITION_TYPES, NOT_OBSERVED } from "../../shared/condition-types.ts";
import type { ReadinessPolicy, ReadinessRequirement } from "../../shared/readiness-policy.ts";

export const oftenUsual = <T>(usual: T, other: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });

interface Said {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  /** By how many generations the condition is older than the node. */
  readonly behind: number;
  readonly life: "endless" | "fresh" | "stale";
  /** The hours since the condition's report arrived. */
  readonly age: number;
  /** Whether the condition flaps, has flapped until it held, or never has. */
  readonly flaps: "no" | "now" | "over";
}
const flaps = oftenUsual<Said["flaps"]>("no", fc.constantFrom("now", "over"));
export const USUAL: Said = { status: "True", reason: "Fine", behind: 0, life: "endless", age: 0, flaps: "no" };
const condition: fc.Arbitrary<Said | null> = fc.option(
  fc.record({
    status: oftenUsual<Said["status"]>("True", fc.constantFrom("True", "False", "Unknown")),
    reason: oftenUsual("Fine", fc.constantFrom("MissingButAllowed", NOT_OBSERVED)),
    behind: oftenUsual(0, fc.constant(1)),
    life: oftenUsual<Said["life"]>("endless", fc.constantFrom("fresh", "stale")),
    age: oftenUsual(0, fc.constantFrom(2, 4)),
    flaps,
  }),
  { freq: 2 },
);
/** A condition of a type that keeps work off a node only if it is False, with each reason and each status equally often. */
const barring: fc.Arbitrary<Said | null> = fc.option(
  fc.record({
    status: fc.constantFrom<Said["status"]>("True", "False", "Unknown"),
    reason: fc.constantFrom("Fine", "MissingButAllowed", NOT_OBSERVED),
    behind: oftenUsual(0, fc.constant(1)),
    life: fc.constantFrom<Said["life"]>("endless", "fresh", "stale"),
    age: fc.constant(0),
    flaps,
  }),
  { freq: 2 },
);
export const NEEDED: readonly string[] = ["agent.connected", "agent.healthy", "os.booted", "hardware.sku"];
/** The conditions of external systems that `READINESS_POLICIES` ask for. */
const FOREIGN: readonly string[] = ["fabric.ready", "disk.ok", "disk.waived"];
const asks = (type: string, more: Partial<ReadinessRequirement> = {}): ReadinessRequirement => ({
  type,
  status: "True",
  max_age_seconds: null,
  deadline_seconds: null,
  ...more,
});
/** Readiness policies, of which a generated node meets each in some ways and misses it in others. */
export const READINESS_POLICIES: readonly ReadinessPolicy[] = [
  [
    { all: [asks("fabric.ready", { max_age_seconds: 3 * 3_600, deadline_seconds: 3_600 }), asks("os.booted")] },
    { any: [asks("disk.ok"), asks("disk.waived", { status: "False", max_age_seconds: 3_600 })] },
  ],
  [{ any: [asks("cloud_init.done"), asks("fabric.ready", { status: "False" })] }],
];
/** A condition that a readiness policy asks for. Each of its facts alone often decides whether its node meets the policy. */
const asked: fc.Arbitrary<Said | null> = fc.option(
  fc.record({
    status: oftenUsual<Said["status"]>("True", fc.constantFrom("False", "Unknown")),
    reason: fc.constant("Fine"),
    behind: oftenUsual(0, fc.constant(1)),
    life: oftenUsual<Said["life"]>("endless", fc.constantFrom("fresh", "stale")),
    age: fc.constantFrom(0, 2, 4),
    flaps,
  }),
  { freq: 5 },
);
/** The conditions of a generated node: of Muster's own types, and of the types that the readiness policies ask for. */
export const conditions: fc.Arbitrary<Readonly<Record<string, Said | null>>> = fc.record(
  Object.fromEntries(
    [...Object.keys(CONDITION_TYPES), ...FOREIGN].map((type) => [
      type,
      type === "hardware.sku"
        ? oftenUsual<Said | null>(USUAL, barring)
        : NEEDED.includes(type)
          ? oftenUsual<Said | null>(USUAL, condition)
          : type === "network.roce" || type === "network.addresses"
            ? barring
            : FOREIGN.includes(type)
              ? asked
              : oftenUsual<Said | null>(null, condition),
    ]),
  ),
);
