/** Returns the sum of a metric's values whose labels have the given values; null if the text has no such value. */
export function metricValue(text: string, name: string, labels: Readonly<Record<string, string>>): number | null {
  const values = samplesOf(text)
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
    .map(({ value }) => value);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses the lines of values in Prometheus's text format. */
export const samplesOf = (text: string): Sample[] =>
  text.split("\n").flatMap((line) => {
    const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined || line.startsWith("#")) return [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = "", text = ""]) => [key, text]);
    return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }];
  });
