/** A page's end as opaque text for the client. The text holds the sort keys of the page's last row. */
export const writeCursor = (keys: readonly string[]): string => Buffer.from(JSON.stringify(keys)).toString("base64url");

/** The unvalidated content of a cursor. Undefined if the text is not a cursor. */
export function cursorContent(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
}
