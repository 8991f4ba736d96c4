/**
 * Drizzle puts the parameters of a failed SQL statement into the error message, and error messages reach logs and API answers. A `StatementError`
 * holds the error code of a failed statement, and its SQL text with $1, $2 and so on in place of values.
 */
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "pg";
import { DrizzleQueryError, drizzle, type NodePgDatabase } from "./orm.ts";

/** The `code` of a `StatementError` is PostgreSQL's SQLSTATE, or undefined if the connection failed. */
export class StatementError extends Error {
  override readonly name = "StatementError";
  readonly code: string | undefined;
  readonly constraint: string | undefined;
  constructor(sql: string, cause: unknown) {
    // PostgreSQL's own message for SQLSTATE class 22 (data exception) quotes the refused value, so the hub does not repeat the message.
    const quotesValue = cause instanceof DatabaseError && cause.code?.startsWith("22") === true;
    const reason = quotesValue ? `a value was refused (SQLSTATE ${cause.code})` : String(cause);
    super(`${reason}; statement: ${bounded(sql)}`, quotesValue ? undefined : { cause });
    this.code = cause instanceof DatabaseError ? cause.code : undefined;
    this.constraint = cause instanceof DatabaseError ? cause.constraint : undefined;
  }
}

/**
 * A statement with a thousand rows has a thousand lines of placeholders, so a `StatementError` holds at most `MOST_SQL` characters of the SQL text.
 */
const MOST_SQL = 1_000;
const bounded = (text: string): string =>
  text.length <= MOST_SQL ? text : `${text.slice(0, MOST_SQL)} ... (${text.length} characters)`;

export function drizzleOn(client: Pool | PoolClient): NodePgDatabase {
  const db = drizzle(client);
  const session = db._.session;
  const prepare = session.prepareQuery.bind(session);
  session.prepareQuery = (...args) => {
    const prepared = prepare(...args);
    const execute = prepared.execute.bind(prepared);
    prepared.execute = (values) => execute(values).catch(rethrowWithoutParameters);
    return prepared;
  };
  return db;
}

function rethrowWithoutParameters(error: unknown): never {
  throw error instanceof DrizzleQueryError ? new StatementError(error.query, error.cause) : error;
}
