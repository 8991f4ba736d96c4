export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly note: string;
  /** The upper bound of a figure that docs/benchmarks.md promises; a figure without a promise has no `atMost`. */
  readonly atMost?: number;
}

export const isHeld = ({ value, atMost }: Figure): boolean => atMost === undefined || value <= atMost;

const inDigits = (value: number): string => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);

export function printFigure(figure: Figure): string {
  const { name, value, unit, note, atMost } = figure;
  const bound = atMost === undefined ? "" : `; at most ${inDigits(atMost)}${isHeld(figure) ? "" : ": NOT HELD"}`;
  return `${name.padEnd(58)} ${inDigits(value).padStart(10)} ${unit.padEnd(14)} ${note}${bound}`;
}
