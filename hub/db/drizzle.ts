/**
 * Drizzle puts the parameters of a failed statement into its error's message, from where they would reach logs and API
 * answers. Here every statement's error keeps the SQL text (which holds only $1, $2 ...) and the code, not the values.
 */
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "pg";
import { DrizzleQueryError, drizzle, type NodePgDatabase } from "./orm.ts";

/** `code` is PostgreSQL's SQLSTATE; undefined when the connection failed. `constraint` is the violated one's name. */
export class StatementError extends Error {
  override readonly name = "StatementError";
  readonly code: string | undefined;
  readonly constraint: string | undefined;
  constructor(sql: string, cause: unknown) {
    // Class 22 (data exception) quotes the refused value in PostgreSQL's own message.
    const quotesValue = cause instanceof DatabaseError && cause.code?.startsWith("22") === true;
    const reason = quotesValue ? `a value was refused (SQLSTATE ${cause.code})` : String(cause);
    super(`${reason}; statement: ${bounded(sql)}`, quotesValue ? undefined : { cause });
    this.code = cause instanceof DatabaseError ? cause.code : undefined;
    this.constraint = cause instanceof DatabaseError ? cause.constraint : undefined;
  }
}

/** A statement over a thousand rows is a thousand lines of placeholders. */
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
