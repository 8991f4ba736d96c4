/**
 * A shell word for exactly this text, in bash and every POSIX shell. No character is special inside single quotes, so only the single
 * quote is replaced. A shell word cannot contain NUL. A caller that passes NUL has not checked its input.
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

/** Values reach a part's static body only as read-only variables. No value is pasted into shell text. */
export const shellHeader = (values: ShellValues): string =>
  Object.entries(values)
    .map(([name, value]) => `${assignment(name, value)}\n`)
    .join("");
