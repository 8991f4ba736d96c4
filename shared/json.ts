import { z } from "zod";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export const Json: z.ZodType<Json> = z.json() as z.ZodType<Json>;

/** JSON that has no schema is limited in its size. */
export interface JsonBounds {
  readonly depth: number;
  /** The limit for the number of values at all levels of a JSON value, the outermost value included. */
  readonly values: number;
  /** The limit for the total length of all texts and names in a JSON value. */
  readonly characters: number;
}

/**
 * A schema for JSON of any shape and of limited size. The check of a JSON value's size stops at the first exceeded limit, so a huge JSON value takes
 * no longer than the largest allowed one.
 */
export const boundedJson = (bounds: JsonBounds): z.ZodType<Json> =>
  z.custom<Json>(
    (value) => isWithin(value, bounds),
    `must be JSON of at most ${bounds.depth} levels, ${bounds.values} values and ${bounds.characters} characters`,
  );

function isWithin(value: unknown, { depth, values, characters }: JsonBounds): boolean {
  let [valuesLeft, charactersLeft] = [values - 1, characters];
  const open: { readonly value: unknown; readonly level: number }[] = [{ value, level: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value: one, level } = next;
    if (typeof one === "string") charactersLeft -= one.length;
    else if (typeof one === "object" && one !== null) {
      const members = Object.values(one);
      valuesLeft -= members.length;
      if (level >= depth || valuesLeft < 0) return false;
      if (!Array.isArray(one)) charactersLeft -= Object.keys(one).join("").length;
      for (const member of members) open.push({ value: member, level: level + 1 });
    } else if (one !== null && typeof one !== "boolean" && !Number.isFinite(one)) return false;
    if (charactersLeft < 0) return false;
  }
  return valuesLeft >= 0;
}

/**
 * Canonical JSON text has sorted keys, no spaces, and no members that are `undefined`. Hub and agent sign canonical JSON texts, so their format never
 * changes.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
    return `{${members.join(",")}}`;
  }
  return JSON.stringify(value ?? null);
}
