import type { z } from "zod";

/** JSON escapes of NUL and of half a surrogate pair, which PostgreSQL cannot store in text or jsonb. */
const SUSPICIOUS = /\\u(0000|d[89a-f])/i;

/**
 * Parses JSON from a host by the given schema. `parseJson` replaces characters that PostgreSQL would refuse. If PostgreSQL refused an agent's text,
 * the agent would resend its message for ever. `parseJson` replaces the characters that PostgreSQL refuses only after the schema has accepted the
 * text, because the schema limits the text's size. `parseJson` replaces each character that PostgreSQL refuses by one other character, so the length
 * of a text stays the same. `parseJson` throws SyntaxError for text that is not JSON.
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
