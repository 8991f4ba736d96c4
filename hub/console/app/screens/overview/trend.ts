export interface Sample {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly value: number;
}

/** Returns the points of a line chart of the samples in the given size; the bottom means 0 and the top the largest value. */
export function pointsOf(samples: readonly Sample[], { width, height }: { width: number; height: number }): string {
  const first = samples[0]?.at ?? 0;
  const span = Math.max(1, (samples.at(-1)?.at ?? 0) - first);
  const most = Math.max(1, ...samples.map(({ value }) => value));
  const round = (length: number): number => Math.round(length * 10) / 10;
  return samples
    .map(({ at, value }) => `${round(((at - first) / span) * width)},${round(height - (value / most) * height)}`)
    .join(" ");
}

/** What the line says, in words. */
export function wordsOf(samples: readonly Sample[]): string {
  const values = samples.map(({ value }) => value);
  const number = (value: number | undefined): string => (value ?? 0).toLocaleString("en");
  return `now ${number(values.at(-1))}, least ${number(Math.min(...values))}, most ${number(Math.max(...values))}`;
}
