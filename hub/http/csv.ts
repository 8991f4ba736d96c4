/** Matches a text that a spreadsheet program would run as a formula, because a host may choose the text of a cell. */
const FORMULA = /^[=+\-@\t\r]/;

/** Writes a CSV cell by RFC 4180. The function `cell` puts an apostrophe before a text that a spreadsheet program would run as a formula. */
function cell(value: string | null): string {
  const text = FORMULA.test(value ?? "") ? `'${value}` : (value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csvLine = (cells: readonly (string | null)[]): string => `${cells.map(cell).join(",")}\r\n`;
