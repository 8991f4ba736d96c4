import { ApiError } from "../../../shared/api/errors.ts";
import { hasPosition } from "../../db/queries/domain-events-list.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { Position } from "../../events/cloud-event.ts";
import { readCursor } from "../page.ts";

/** Returns the position in the list of domain events that the client's cursor names, or 0 if the client sent no cursor. */
export const positionOfCursor = (cursor: string | undefined): bigint =>
  BigInt(readCursor(cursor, Position)?.[0] ?? "0");

/** Throws `position_gone` if domain events after the position may have been removed, or if the position is not from this database. */
export async function mustHavePosition(db: Db | Tx, position: bigint): Promise<void> {
  if (await hasPosition(db, position)) return;
  throw new ApiError(
    "position_gone",
    "The events after this cursor were removed because of their age, or the cursor belongs to another database. Read the present state of everything that you follow, then begin without a cursor.",
  );
}
