import { type SQL, sql } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import { ApiError } from "../../../shared/api/errors.ts";
import type { Db, Tx } from "../../db/tx.ts";

/** PostgreSQL's own row version: exact, where a time of change is not. */
export async function versionOf(db: Db | Tx, table: PgTable, where: SQL): Promise<string> {
  const [row] = await db.select({ version: sql<string>`xmin::text` }).from(table).where(where);
  if (row === undefined) throw new ApiError("not_found", "The resource is not there any more.");
  return row.version;
}

export const isUniqueViolation = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "23505";
