/**
 * Quotes a text as one shell word, in bash and every POSIX shell. No character is special inside single quotes, so `shellQuote` replaces only the
 * single quote. A shell word cannot contain the character NUL. `shellQuote` throws for NUL, because its caller has not checked the input.
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

/** Values reach the static body of a shell part only as read-only variables, so no value becomes shell text of the body. */
export const shellHeader = (values: ShellValues): string =>
  Object.entries(values)
    .map(([name, value]) => `${assignment(name, value)}\n`)
    .join("");
