/**
 * Transactions of our own instead of drizzle's `db.transaction()`: that one sends BEGIN before its `try`, so a
 * connection cut at that moment leaks the client, and after `max` cuts the pool is lost (decision P6).
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "pg";
import { drizzleOn } from "./drizzle.ts";
import { type NodePgDatabase, sql } from "./orm.ts";

/** Runs single statements, each on whichever connection is free. Its `transaction` is hidden on purpose: use `inTx`. */
export type Db = Omit<NodePgDatabase, "transaction">;

declare const open: unique symbol;
/** Runs statements inside the one transaction that `inTx` opened. Only valid until its function returns. */
export type Tx = Db & { readonly [open]: true };

export type TxOptions = {
  isolation?: "read committed" | "repeatable read" | "serializable";
  readOnly?: boolean;
};

/**
 * Opens a transaction, runs `fn`, commits. `fn` throwing rolls back and rethrows. Where PostgreSQL undoes the transaction to end a deadlock, `fn` runs
 * again: what a stage commits and what an agent reports lock the same rows in other orders, and neither should fail for it. So `fn` changes nothing but
 * rows, and no network call belongs inside it.
 */
export type InTx = <T>(fn: (tx: Tx) => Promise<T>, options?: TxOptions) => Promise<T>;

/**
 * The connection broke while COMMIT was under way: the transaction may or may not have been committed. Look at the rows
 * again before doing anything that must not happen twice.
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

/** No connection, or it broke before the transaction had begun: nothing was written. */
export class DatabaseUnavailableError extends Error {
  override readonly name = "DatabaseUnavailableError";
  readonly code = "database_unavailable";
  constructor(cause: unknown) {
    super(`The database cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** `fn` swallowed the error of a statement, so PostgreSQL answered COMMIT with ROLLBACK: nothing was written. */
export class TransactionRolledBackError extends Error {
  override readonly name = "TransactionRolledBackError";
  readonly code = "transaction_rolled_back";
  constructor() {
    super("A statement failed inside the transaction and its error was swallowed, so COMMIT rolled everything back");
  }
}

const MOST_TRIES = 5;
/** So that two that met once do not meet again at once. */
const PAUSE_MS = 20;

export function transactionsOn(pool: Pool): InTx {
  const once = async <T>(fn: (tx: Tx) => Promise<T>, options: TxOptions): Promise<T> => {
    const client = await pool.connect().catch(unavailable);
    let broken: Error | undefined;
    try {
      await client.query(beginStatement(options)).catch(unavailable);
      const result = await fn(drizzleOn(client) as unknown as Tx);
      await commit(client);
      return result;
    } catch (error) {
      broken = await rollBack(client, error);
      throw error;
    } finally {
      // An argument makes the pool destroy the client instead of lending it again in an unknown state.
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
 * A constraint (class 23) or a serialization failure or deadlock (class 40, but not 40003 "completion unknown") is
 * PostgreSQL's own word that nothing was committed. An operator's cut (57P01) or a lost socket may arrive after the
 * commit took effect and before its acknowledgement.
 */
function commitSurelyFailed(error: unknown): boolean {
  if (!(error instanceof DatabaseError) || error.code === undefined) return false;
  return error.code !== "40003" && (error.code.startsWith("23") || error.code.startsWith("40"));
}

/** Returns the error for which the client must be destroyed, or undefined when it is clean again. */
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

/** A part of a transaction: when `fn` throws, what it wrote is taken back and the error thrown on, and the transaction may go on without it. */
export async function inSavepoint<T>(tx: Tx, fn: () => Promise<T>): Promise<T> {
  await tx.execute(sql`savepoint part`);
  try {
    const result = await fn();
    await tx.execute(sql`release savepoint part`);
    return result;
  } catch (error) {
    // Failing at this leaves nothing that could be committed, and is what the caller hears instead.
    await tx.execute(sql`rollback to savepoint part; release savepoint part`);
    throw error;
  }
}

/** PostgreSQL undid the whole transaction to end a deadlock; nothing of it was written, and it may run again. */
function wasDeadlock(error: unknown): boolean {
  const cause = error instanceof Error && !(error instanceof DatabaseError) ? error.cause : error;
  return cause instanceof DatabaseError && cause.code === "40P01";
}
