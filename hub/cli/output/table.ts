import { coloured } from "./cells.ts";

export interface TableStyle {
  readonly headers: boolean;
  readonly colours: boolean;
}

/** Returns rows of cells as a table, whose columns are as wide as their widest cell. */
export function tableText(heads: readonly string[], rows: readonly (readonly string[])[], style: TableStyle): string {
  const shown = style.headers ? [heads, ...rows] : rows;
  const widths = heads.map((_, index) => Math.max(0, ...shown.map((row) => [...(row[index] ?? "")].length)));
  return shown.map((row, index) => `${lineOf(row, widths, style.colours && (index > 0 || !style.headers))}\n`).join("");
}

function lineOf(row: readonly string[], widths: readonly number[], colours: boolean): string {
  const cells = row.map((cell, index) => {
    const last = index === row.length - 1;
    const padding = last ? "" : " ".repeat((widths[index] ?? 0) - [...cell].length);
    return (colours ? coloured(cell) : cell) + padding;
  });
  return cells.join("  ").trimEnd();
}
