/** What PostgreSQL cannot store in a text or a jsonb, and JSON can spell: NUL, and half of a surrogate pair. */
const SUSPICIOUS = /\\u(0000|d[89a-f])/i;

/**
 * Parses JSON of a host. Text that the database would refuse is repaired here, at the border: one such character in a task's message would
 * otherwise be resent for ever. Throws SyntaxError for what is not JSON.
 */
export function parseJson(text: string): unknown {
  return SUSPICIOUS.test(text) ? JSON.parse(text, (_key, value: unknown) => storable(value)) : JSON.parse(text);
}

function storable(value: unknown): unknown {
  if (typeof value === "string") return storableText(value);
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const keys = Object.keys(value);
  if (keys.every((key) => storableText(key) === key)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [storableText(key), member]));
}

const storableText = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD");
