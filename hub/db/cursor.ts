/**
 * Writes a cursor: an opaque text with which a client tells the API where the client's last page ended. A page cursor of the API holds the sort keys
 * of the last row of the client's page.
 */
export const writeCursor = (keys: readonly string[]): string => Buffer.from(JSON.stringify(keys)).toString("base64url");

/** Decodes the content of a cursor without checking it, or returns undefined if the text is no cursor. */
export function cursorContent(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
}
