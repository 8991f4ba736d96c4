/** Where a page of rows ended, by the keys of the list's own order, as text that a client gives back as it is. */
export const writeCursor = (keys: readonly string[]): string => Buffer.from(JSON.stringify(keys)).toString("base64url");

/** What was written into it, yet to be checked; undefined for text that is no cursor at all. */
export function cursorContent(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
}
