import type { Signal } from "../../shared/api/signals.ts";
import type { ConditionStatus, ReportedCondition } from "../../shared/readiness.ts";

export interface NodeOfSignal {
  readonly generation: number;
  readonly begunAt: Date;
}

/** A report about a condition that the hub has already stored for the node. */
export interface HeldReport {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly generation: number;
  readonly observedAt: Date;
  readonly stale: boolean;
}

export type Judged =
  | {
      readonly outcome: "applied";
      readonly conditions: readonly ReportedCondition[];
      /** The conditions of the signal that were not applied, each with why; null if all were. */
      readonly detail: string | null;
    }
  | { readonly outcome: "stale" | "early" | "late" | "conflicting"; readonly conditions: []; readonly detail: string };

/**
 * Of two reports about one condition at the same moment, the one with the worse status counts (False before Unknown, and Unknown before True), as in
 * `writeConditions`.
 */
const BADNESS: Readonly<Record<ConditionStatus, number>> = { True: 0, Unknown: 1, False: 2 };

const kept = (outcome: "stale" | "early" | "late" | "conflicting", detail: string): Judged => ({
  outcome,
  conditions: [],
  detail,
});

/**
 * Decides whether the hub applies a readiness signal to a node, and says why not. A readiness signal without a generation is about the node's present
 * generation, unless the sender observed all conditions before this generation began. If the hub has parked the readiness signal because no node was
 * there, the observation may be older than the node.
 */
export function judgeSignal(
  signal: Pick<Signal, "generation" | "conditions">,
  node: NodeOfSignal,
  held: readonly HeldReport[],
  wasParked: boolean,
): Judged {
  const { generation } = signal;
  if (generation !== undefined && generation < node.generation)
    return kept(
      "stale",
      `the signal is about generation ${generation}, and the node has generation ${node.generation}`,
    );
  if (generation !== undefined && generation > node.generation)
    return kept(
      "early",
      `the signal is about generation ${generation}, and the node has generation ${node.generation}`,
    );
  const ofNow =
    generation !== undefined || wasParked
      ? signal.conditions
      : signal.conditions.filter((one) => new Date(one.observed_at) >= node.begunAt);
  if (ofNow.length === 0)
    return kept("stale", `the signal was observed before the node's generation began at ${node.begunAt.toISOString()}`);
  const fates = ofNow.map((one) => fateOf(one, held, node.generation));
  const conditions = ofNow.filter((_, index) => fates[index] === "applied");
  if (conditions.length > 0) {
    const before = signal.conditions.filter((one) => !ofNow.includes(one));
    return { outcome: "applied", conditions, detail: toldLeftOut(before, ofNow, fates) };
  }
  return fates.includes("conflicting")
    ? kept("conflicting", WHY.conflicting)
    : kept("late", "the node has newer reports of all conditions of the signal");
}

const MOST_DETAIL = 1_000;
const BEFORE = "observed before the node's generation began";
const WHY = {
  late: "the node has a newer report",
  conflicting: "another report about the same moment says a worse status",
} as const;

type Fate = "applied" | keyof typeof WHY;

/** Says which conditions of an applied signal the hub left out, and why; null if the hub applied all of them. */
function toldLeftOut(
  before: readonly ReportedCondition[],
  ofNow: readonly ReportedCondition[],
  fates: readonly Fate[],
): string | null {
  const left = [
    ...before.map(({ type }) => `${type} (${BEFORE})`),
    ...ofNow.flatMap(({ type }, index) => {
      const fate = fates[index] ?? "applied";
      return fate === "applied" ? [] : [`${type} (${WHY[fate]})`];
    }),
  ];
  return left.length === 0 ? null : `not applied: ${left.join(", ")}`.slice(0, MOST_DETAIL);
}

function fateOf(one: ReportedCondition, held: readonly HeldReport[], generation: number): Fate {
  const before = held.find(({ type }) => type === one.type);
  if (before === undefined || before.generation !== generation || before.stale) return "applied";
  const apart = new Date(one.observed_at).getTime() - before.observedAt.getTime();
  if (apart !== 0) return apart > 0 ? "applied" : "late";
  return BADNESS[one.status] >= BADNESS[before.status] ? "applied" : "conflicting";
}
