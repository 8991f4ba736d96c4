import { readFileSync } from "node:fs";
import type { Operation } from "../description.ts";

export const TABLE = new URL("operations.json", import.meta.url);

let read: readonly Operation[] | null = null;

/**
 * The operations of the API of this version of Muster, from a table that ships with the program. Because the program ships with a table of the API's
 * operations, help, completion and the man page need no hub, and no command loads the hub's whole API description. A test compares the table with
 * docs/openapi.json.
 */
export function shippedOperations(): readonly Operation[] {
  read ??= JSON.parse(readFileSync(TABLE, "utf8")) as Operation[];
  return read;
}
