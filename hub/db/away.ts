import { StatementError } from "./drizzle.ts";
import { CommitOutcomeUnknownError, DatabaseUnavailableError } from "./tx.ts";

/**
 * True if the state of the database caused the error, and not the SQL statement. For example, a lost connection, a starting server and a deadlock
 * come from the database's state (SQLSTATE classes 08, 53, 57, 40, 55).
 */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof CommitOutcomeUnknownError || error instanceof DatabaseUnavailableError) return true;
  if (error instanceof StatementError) return error.code === undefined || /^(08|53|57|40|55)/.test(error.code);
  return error instanceof Error && "code" in error && /^(08|57P)/.test(String(error.code));
}
