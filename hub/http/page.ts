import { z } from "zod";
import { ApiError } from "../../shared/api/errors.ts";
import { cursorContent, writeCursor } from "../db/cursor.ts";
import { isStorable } from "./problem.ts";

/** The query parameters of every list. A cursor is opaque to clients; it marks where the previous page of the list ended. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().min(1).max(512).optional(),
};
export const PageQuery = z.strictObject(pageQuery);

const anyKeys = (keys: number) => z.array(z.string().refine(isStorable)).length(keys);

/**
 * Returns the sort keys in a list's cursor, after which the page begins. The argument `keys` of `readCursor` is the number of sort keys that a cursor
 * of the list must have, or a schema of these sort keys. `readCursor` returns null for the first page of a list, which has no cursor.
 */
export function readCursor(
  cursor: string | undefined,
  keys: number | z.ZodType<readonly string[]>,
): readonly string[] | null {
  if (cursor === undefined) return null;
  const parsed = (typeof keys === "number" ? anyKeys(keys) : keys).safeParse(cursorContent(cursor));
  if (parsed.success) return parsed.data;
  throw new ApiError("validation_failed", "The cursor is not one of this list. Leave it out to begin at the start.", {
    errors: [{ pointer: "/cursor", message: "is not a cursor of this list" }],
  });
}

/**
 * The cursor of a list that is newest first holds a time in UTC, as PostgreSQL writes it, and an id. PostgreSQL's text of the time keeps the
 * microseconds that a Date would cut off.
 */
const Before = z.tuple([
  z.string().refine((text) => z.iso.datetime().safeParse(text.replace(" ", "T").replace(/\+00$/, "Z")).success),
  z.uuid(),
]);

export function readBefore(cursor: string | undefined): readonly [string, string] | null {
  const [at, id] = readCursor(cursor, Before) ?? [];
  return at === undefined || id === undefined ? null : [at, id];
}

/** The query of the caller of `pageOf` asked for one row more than `limit`, so an additional row shows that a next page exists. */
export function pageOf<Row, Item>(
  rows: readonly Row[],
  limit: number,
  keysOf: (row: Row) => readonly string[],
  toItem: (row: Row) => Item,
): { items: Item[]; next_cursor: string | null } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items: shown.map(toItem), next_cursor: more ? writeCursor(keysOf(last)) : null };
}
