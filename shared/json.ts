import { z } from "zod";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export const Json: z.ZodType<Json> = z.json() as z.ZodType<Json>;

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
