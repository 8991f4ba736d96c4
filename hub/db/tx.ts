/**
 * Drizzle's `db.transaction()` sends BEGIN before its `try` block, so a connection that is cut during BEGIN leaks its client (decision P6). After
 * `max` leaked clients, the pool of connections is empty, so the hub opens its transactions by `inTx` instead of Drizzle's `db.transaction()`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Pool, PoolClient } from "pg";
import { DatabaseError } from "pg";
import { keepChanges, markChanges, type OnCommitted, tellChanges } from "./committed.ts";
import { drizzleOn } from "./drizzle.ts";
import { type NodePgDatabase, sql } from "./orm.ts";

/** The type `Db` hides Drizzle's `transaction` on purpose, because the hub's code must use `inTx`. */
export type Db = Omit<NodePgDatabase, "transaction">;

declare const open: unique symbol;
/** A transaction `Tx` is valid only until the function that `inTx` runs has returned. */
export type Tx = Db & { readonly [open]: true };

export type TxOptions = {
  isolation?: "read committed" | "repeatable read" | "serializable";
  readOnly?: boolean;
};

/**
 * Opens a transaction, runs the function `fn` and commits. If `fn` throws, `inTx` rolls the transaction back and rethrows the error. If a deadlock
 * aborts the transaction, `inTx` repeats `fn`, for at most `MOST_TRIES` runs in all. Deadlocks happen because workflow stages and agents' reports
 * lock the same rows in different orders. Because `inTx` may run `fn` more than once, `fn` must change nothing but rows and must make no network
 * call.
 */
export type InTx = <T>(fn: (tx: Tx) => Promise<T>, options?: TxOptions) => Promise<T>;

/**
 * A `CommitOutcomeUnknownError` says that the connection broke during COMMIT, so the transaction may or may not be committed. After a
 * `CommitOutcomeUnknownError`, the caller must read the rows anew before any action that must not happen twice.
 */
export class CommitOutcomeUnknownError extends Error {
  override readonly name = "CommitOutcomeUnknownError";
  readonly code = "commit_outcome_unknown";
  constructor(cause: unknown) {
    super("The database connection broke during COMMIT; read the rows again to learn whether it took effect", {
      cause,
    });
  }
}

/**
 * A `DatabaseUnavailableError` says that the database could not be reached, or that the connection broke before the transaction began, so nothing was
 * written.
 */
export class DatabaseUnavailableError extends Error {
  override readonly name = "DatabaseUnavailableError";
  readonly code = "database_unavailable";
  constructor(cause: unknown) {
    super(`The database cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** A `TransactionRolledBackError` says that `fn` ignored a failed statement, so PostgreSQL answered COMMIT with ROLLBACK and wrote nothing. */
export class TransactionRolledBackError extends Error {
  override readonly name = "TransactionRolledBackError";
  readonly code = "transaction_rolled_back";
  constructor() {
    super("A statement failed inside the transaction and its error was swallowed, so COMMIT rolled everything back");
  }
}

const MOST_TRIES = 5;
/** The random pause before a retry keeps two transactions from running into the same deadlock a second time. */
const PAUSE_MS = 20;

/**
 * The observer `onCommitted` gets the changes of each committed transaction. After an unknown outcome of a commit the observer gets nothing, because
 * the changes may not exist.
 */
export function transactionsOn(pool: Pool, onCommitted?: OnCommitted): InTx {
  const once = async <T>(fn: (tx: Tx) => Promise<T>, options: TxOptions): Promise<T> => {
    const client = await pool.connect().catch(unavailable);
    let broken: Error | undefined;
    try {
      await client.query(beginStatement(options)).catch(unavailable);
      const tx = drizzleOn(client) as unknown as Tx;
      if (onCommitted !== undefined) keepChanges(tx);
      const result = await fn(tx);
      await commit(client);
      if (onCommitted !== undefined) tellChanges(tx, onCommitted);
      return result;
    } catch (error) {
      broken = await rollBack(client, error);
      throw error;
    } finally {
      // If `release` gets an error as its argument, the pool destroys the client. Without an error as the argument of `release`, the pool would lend
      // out a client whose connection is in an unknown state.
      client.release(broken);
    }
  };
  return async (fn, options = {}) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await once(fn, options);
      } catch (error) {
        if (tries === MOST_TRIES || !wasDeadlock(error)) throw error;
        await sleep(Math.random() * PAUSE_MS * tries);
      }
    }
  };
}

const unavailable = (error: unknown): never => {
  throw new DatabaseUnavailableError(error);
};

function beginStatement({ isolation, readOnly }: TxOptions): string {
  return `begin isolation level ${isolation ?? "read committed"}${readOnly === true ? " read only" : ""}`;
}

async function commit(client: PoolClient): Promise<void> {
  let command: string;
  try {
    ({ command } = await client.query("commit"));
  } catch (error) {
    throw commitSurelyFailed(error) ? error : new CommitOutcomeUnknownError(error);
  }
  if (command !== "COMMIT") throw new TransactionRolledBackError();
}

/**
 * True if PostgreSQL's error proves that nothing was committed: a violated constraint (class 23), a serialization failure or a deadlock (class 40,
 * except 40003). An administrator's shutdown (57P01) or a lost socket may also follow a successful commit, so neither proves that the commit failed.
 */
function commitSurelyFailed(error: unknown): boolean {
  if (!(error instanceof DatabaseError) || error.code === undefined) return false;
  return error.code !== "40003" && (error.code.startsWith("23") || error.code.startsWith("40"));
}

/** Rolls a transaction back, and returns the error with which the pool must destroy the client, or undefined if the client is usable. */
async function rollBack(client: PoolClient, cause: unknown): Promise<Error | undefined> {
  const fallback = new Error("The transaction's connection is in an unknown state", { cause });
  if (cause instanceof CommitOutcomeUnknownError) return fallback;
  try {
    await client.query("rollback");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : fallback;
  }
}

/**
 * Returns a transaction object (`Tx`) for a database connection that does not belong to the pool. The caller of `txOn` opens, commits and rolls back
 * the transaction, because the caller also uses the connection itself.
 */
export const txOn = (client: Client): Tx => drizzleOn(client as PoolClient) as unknown as Tx;

/** If the function `fn` throws, `inSavepoint` undoes the writes of `fn` and rethrows the error, but the transaction can continue. */
export async function inSavepoint<T>(tx: Tx, fn: () => Promise<T>): Promise<T> {
  await tx.execute(sql`savepoint part`);
  const forget = markChanges(tx);
  try {
    const result = await fn();
    await tx.execute(sql`release savepoint part`);
    return result;
  } catch (error) {
    // If the rollback to the savepoint fails, nothing can be committed, and the caller gets the rollback's error.
    forget();
    await tx.execute(sql`rollback to savepoint part; release savepoint part`);
    throw error;
  }
}

/** Runs the function `fn` and undoes the writes of `fn`, so that a caller learns what `fn` would do. */
export async function inUndoneSavepoint<T>(tx: Tx, fn: () => Promise<T>): Promise<T> {
  await tx.execute(sql`savepoint planned`);
  const forget = markChanges(tx);
  try {
    return await fn();
  } finally {
    forget();
    await tx.execute(sql`rollback to savepoint planned; release savepoint planned`);
  }
}

function wasDeadlock(error: unknown): boolean {
  const cause = error instanceof Error && !(error instanceof DatabaseError) ? error.cause : error;
  return cause instanceof DatabaseError && cause.code === "40P01";
}
