import { Counter, Gauge, Histogram } from "prom-client";

/**
 * The values that a label of a metric may have: a closed list, or at most `most` different texts. A metric with a free text as a label would grow
 * with the fleet, so every text above the limit of an `UpTo` label counts as `other`.
 */
export type LabelValues = readonly string[] | UpTo;
export interface UpTo {
  readonly most: number;
}
export const upTo = (most: number): UpTo => ({ most });
export const OTHER = "other";

export type LabelSets = Readonly<Record<string, LabelValues>>;
export type Labels<L extends LabelSets> = {
  readonly [K in keyof L]: L[K] extends readonly (infer V)[] ? V : string;
};

export type FamilyKind = "counter" | "gauge" | "histogram";
/** One metric family: its name without a suffix such as `_bucket`, and the metric of prom-client that holds its values. */
export interface Family {
  readonly name: string;
  readonly kind: FamilyKind;
  readonly labels: LabelSets;
  readonly metric: Counter | Gauge | Histogram;
}
interface About<L extends LabelSets> {
  readonly name: string;
  readonly help: string;
  readonly labels: L;
}

/** Sums over hubs are right for counters and histograms, because each hub counts only its own work. */
const OWN = "Each hub counts its own work: add the hubs up.";

/** Returns a function that replaces the texts of `UpTo` labels above the label's limit by `other`. */
function withinLimits<L extends LabelSets>(sets: L): (labels: Labels<L>) => Record<string, string> {
  const seen = new Map<string, Set<string>>();
  return (labels) =>
    Object.fromEntries(
      Object.entries(labels as Record<string, string>).map(([name, value]) => {
        const set = sets[name];
        if (set === undefined) throw new Error(`the metric has no label ${name}`);
        if ("most" in set) {
          const known = seen.get(name) ?? new Set();
          seen.set(name, known);
          if (!known.has(value) && known.size >= set.most) return [name, OTHER];
          known.add(value);
          return [name, value];
        }
        return [name, set.includes(value) ? value : OTHER];
      }),
    );
}

export interface CounterFamily<L extends LabelSets> extends Family {
  readonly labels: L;
  add(labels: Labels<L>, by?: number): void;
}

export function counter<const L extends LabelSets>({ name, help, labels }: About<L>): CounterFamily<L> {
  const metric = new Counter({ name, help: `${help} ${OWN}`, labelNames: Object.keys(labels), registers: [] });
  const bounded = withinLimits(labels);
  return { name, kind: "counter", labels, metric, add: (values, by = 1) => metric.inc(bounded(values), by) };
}

export interface HistogramFamily<L extends LabelSets> extends Family {
  readonly labels: L;
  observe(labels: Labels<L>, value: number): void;
}

export function histogram<const L extends LabelSets>({
  name,
  help,
  labels,
  buckets,
}: About<L> & { readonly buckets: readonly number[] }): HistogramFamily<L> {
  const metric = new Histogram({
    name,
    help: `${help} ${OWN}`,
    labelNames: Object.keys(labels),
    buckets: [...buckets],
    registers: [],
  });
  const bounded = withinLimits(labels);
  return {
    name,
    kind: "histogram",
    labels,
    metric,
    observe: (values, value) => metric.observe(bounded(values), value),
  };
}

export interface GaugeFamily<L extends LabelSets> extends Family {
  readonly labels: L;
  /** Replaces all values of the gauge. A combination of labels that is not in `rows` disappears from the answer to the next scrape. */
  show(rows: readonly { readonly labels: Labels<L>; readonly value: number }[]): void;
}

/** `told` says whose fact the gauge shows: a fact of this hub's process, or a fact of the database that every hub reads alike. */
export function gauge<const L extends LabelSets>({
  name,
  help,
  labels,
  told,
}: About<L> & { readonly told: "process" | "database" }): GaugeFamily<L> {
  const whose =
    told === "process"
      ? ""
      : " Every hub reads the same value from the database: take the maximum over the hubs, never the sum.";
  const labelNames = Object.keys(labels);
  const metric = new Gauge({ name, help: `${help}${whose}`, labelNames, registers: [] });
  const bounded = withinLimits(labels);
  // prom-client gives a gauge without labels the value 0 when it is made and at each reset. If nobody has measured the value of a gauge, a value 0
  // would look like a measured one.
  const empty = (): void => {
    metric.reset();
    if (labelNames.length === 0) metric.remove();
  };
  empty();
  return {
    name,
    kind: "gauge",
    labels,
    metric,
    show: (rows) => {
      empty();
      for (const row of rows) metric.inc(bounded(row.labels), row.value);
    },
  };
}
