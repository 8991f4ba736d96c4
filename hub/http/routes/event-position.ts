import { ApiError } from "../../../shared/api/errors.ts";
import { hasPosition } from "../../db/queries/domain-events-list.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { Position } from "../../events/cloud-event.ts";
import { readCursor } from "../page.ts";

/**
 * Returns the position in the list of domain events that a client's cursor names. For a client without a cursor, `positionOfCursor` returns position
 * 0.
 */
export const positionOfCursor = (cursor: string | undefined): bigint =>
  BigInt(readCursor(cursor, Position)?.[0] ?? "0");

/**
 * Throws `position_gone` if retention may have removed domain events after the position of the client's cursor, or if the cursor is from another
 * database.
 */
export async function mustHavePosition(db: Db | Tx, position: bigint): Promise<void> {
  if (await hasPosition(db, position)) return;
  throw new ApiError(
    "position_gone",
    "The events after this cursor were removed because of their age, or the cursor belongs to another database. Read the present state of everything that you follow, then begin without a cursor.",
  );
}
