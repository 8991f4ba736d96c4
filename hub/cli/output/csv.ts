/** Matches the begin of a text that a spreadsheet program would take for a formula and would execute. */
const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^[+-]?\d+([.]\d+)?$/;

function field(text: string): string {
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Returns rows as CSV by RFC 4180. A text that a spreadsheet program would take for a formula gets an apostrophe in front of it. */
export const csvText = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
