import { z } from "zod";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export const Json: z.ZodType<Json> = z.json() as z.ZodType<Json>;

/** How much JSON there may be where no schema says its shape. */
export interface JsonBounds {
  readonly depth: number;
  /** Of all levels together: members, elements and the value itself. */
  readonly values: number;
  /** Of all texts and names together. */
  readonly characters: number;
}

/** JSON of any shape and of a bounded size. Where a bound is passed no deeper level is looked at, however much there is of it. */
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

/** One text per value: keys sorted, no spaces, `undefined` members left out. Both ends hash and sign this text, so it must never change. */
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
