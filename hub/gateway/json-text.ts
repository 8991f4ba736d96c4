import type { z } from "zod";

/** What PostgreSQL cannot store in a text or a jsonb, and JSON can spell: NUL, and half of a surrogate pair. */
const SUSPICIOUS = /\\u(0000|d[89a-f])/i;

/**
 * Parses JSON of a host by its schema. Text that the database would refuse is repaired here, at the border: one such character in a task's message
 * would otherwise be resent for ever. Repaired is only what the schema let through, whose size it bounds: anybody can send a megabyte that
 * no schema takes. A repair changes no text's length. Throws SyntaxError for what is not JSON.
 */
export function parseJson<T>(schema: z.ZodType<T>, text: string): z.ZodSafeParseResult<T> {
  const parsed = schema.safeParse(JSON.parse(text));
  return parsed.success && SUSPICIOUS.test(text) ? { ...parsed, data: storable(parsed.data) as T } : parsed;
}

function storable(value: unknown): unknown {
  if (typeof value === "string") return storableText(value);
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(storable);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [storableText(key), storable(member)]));
}

const storableText = (text: string): string => text.toWellFormed().replaceAll("\0", "\uFFFD");
