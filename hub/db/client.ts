/**
 * Opens the hub's one pool of database connections. One pool can serve the embedded server or any other PostgreSQL >= 15, because the two differ only
 * in their URLs. Drizzle gets no schema object, because the hub's queries name their tables themselves and use no relational queries of Drizzle.
 */
import type { Pool } from "pg";
import type { Log } from "../../shared/log.ts";
import type { OnCommitted } from "./committed.ts";
import { drizzleOn } from "./drizzle.ts";
import { Servers, ServersPool } from "./servers.ts";
import type { Db, InTx } from "./tx.ts";
import { transactionsOn } from "./tx.ts";

export type DatabaseOptions = {
  url: string;
  poolSize: number;
  /** The name that identifies the hub instance in PostgreSQL's view pg_stat_activity. */
  applicationName: string;
  log: Log;
  timeouts?: Partial<DatabaseTimeouts>;
  /** Gets what each committed transaction has changed. The function `onCommitted` must not throw, because the transaction is already committed. */
  onCommitted?: OnCommitted;
};

export type DatabaseTimeouts = {
  /** The time limit for getting a database connection from the pool, which includes the wait for a free connection. */
  connectMs: number;
  statementMs: number;
  lockMs: number;
  /** PostgreSQL ends a transaction that is idle for `idleInTransactionMs`, because the hub then hangs or has forgotten the transaction. */
  idleInTransactionMs: number;
};

export type Database = {
  /** `db` runs single SQL statements, and `inTx` runs writes that must succeed together. */
  db: Db;
  pool: Pool;
  inTx: InTx;
  close(): Promise<void>;
};

const DEFAULT_TIMEOUTS: DatabaseTimeouts = {
  connectMs: 10_000,
  statementMs: 30_000,
  lockMs: 10_000,
  idleInTransactionMs: 30_000,
};

/** Makes the pool of database connections, which opens no connection before the first statement. */
export function openDatabase(options: DatabaseOptions): Database {
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const pool = new ServersPool(Servers.of(options.url), {
    max: options.poolSize,
    application_name: options.applicationName,
    connectionTimeoutMillis: timeouts.connectMs,
    statement_timeout: timeouts.statementMs,
    lock_timeout: timeouts.lockMs,
    idle_in_transaction_session_timeout: timeouts.idleInTransactionMs,
    // PostgreSQL itself enforces statement_timeout. The client-side `query_timeout` ends a statement if the database server or the network no longer
    // answers.
    query_timeout: timeouts.statementMs + 10_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    idleTimeoutMillis: 60_000,
    // PostgreSQL's JIT compilation would take longer than any of the hub's statements takes to run. Without `jit=off`, the cost estimate of a large
    // table alone would start the JIT compilation.
    options: "-c TimeZone=UTC -c jit=off",
  });
  surviveLostConnections(pool, options.log);
  let closing: Promise<void> | undefined;
  return {
    db: drizzleOn(pool),
    pool,
    inTx: transactionsOn(pool, options.onCommitted),
    close: () => {
      closing ??= pool.end();
      return closing;
    },
  };
}

/**
 * The library pg emits 'error' on an idle client whose connection is cut. Without a listener, pg's 'error' event would end the hub's process. The
 * pool replaces idle clients whose connection was cut, and `inTx` destroys broken clients.
 */
function surviveLostConnections(pool: Pool, log: Log): void {
  pool.on("error", (error) => log.warn("idle database connection lost", { error: error.message }));
  pool.on("connect", (client) => {
    client.on("error", (error) => log.warn("database connection lost", { error: error.message }));
  });
}
