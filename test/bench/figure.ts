export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly note: string;
}

export const printFigure = (figure: Figure): string =>
  `${figure.name.padEnd(58)} ${figure.value.toFixed(figure.value < 10 ? 2 : figure.value < 100 ? 1 : 0).padStart(10)} ${figure.unit.padEnd(14)} ${figure.note}`;
