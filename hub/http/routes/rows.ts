import { ApiError } from "../../../shared/api/errors.ts";
import { type PgTable, type SQL, sql } from "../../db/orm.ts";
import type { Db, Tx } from "../../db/tx.ts";

/** PostgreSQL's own row version: exact, where a time of change is not. */
export async function versionOf(db: Db | Tx, table: PgTable, where: SQL): Promise<string> {
  const [row] = await db.select({ version: sql<string>`xmin::text` }).from(table).where(where);
  if (row === undefined) throw new ApiError("not_found", "The resource is not there any more.");
  return row.version;
}

export const isUniqueViolation = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "23505";

/** Who changes a resource says which version of it they have read (decision P4). */
export function mustMatch(ifMatch: string | null): string {
  if (ifMatch === null)
    throw new ApiError("precondition_required", "Send the ETag of the version that you change as If-Match.");
  return ifMatch;
}

export const isVersion = (version: string): SQL => sql`xmin::text = ${version}`;

export const changedMeanwhile = (what: string): ApiError =>
  new ApiError("precondition_failed", `The ${what} was changed since you read it. Read it again and decide anew.`);
