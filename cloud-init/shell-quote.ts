/**
 * One shell word that stands for exactly this text, in bash and every POSIX shell. Inside single quotes no character is special, so
 * only the quote itself is taken out of them. No shell can hold NUL: a caller that lets one through has not parsed its input.
 */
export const shellQuote = (text: string): string => {
  if (text.includes("\0")) throw new RangeError("a shell word cannot hold NUL; refuse it where the value enters");
  return `'${text.replaceAll("'", "'\\''")}'`;
};

export type ShellValue = string | number | boolean | readonly string[];
export type ShellValues = Readonly<Record<string, ShellValue>>;

const assignment = (name: string, value: ShellValue): string =>
  typeof value === "object"
    ? `readonly -a ${name}=(${value.map(shellQuote).join(" ")})`
    : `readonly ${name}=${shellQuote(String(value))}`;

/** Values reach a part's static body as read-only variables only; no value is ever pasted into shell text. */
export const shellHeader = (values: ShellValues): string =>
  Object.entries(values)
    .map(([name, value]) => `${assignment(name, value)}\n`)
    .join("");
