/** Spreadsheet programs run a cell that begins with one of these characters as a formula, and texts of an entry may come from a host. */
const FORMULA = /^[=+\-@\t\r]/;

/** Writes a cell by RFC 4180. A text that a spreadsheet program would run as a formula begins with an apostrophe. */
function cell(value: string | null): string {
  const text = FORMULA.test(value ?? "") ? `'${value}` : (value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csvLine = (cells: readonly (string | null)[]): string => `${cells.map(cell).join(",")}\r\n`;
