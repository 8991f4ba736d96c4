/**
 * The hub's one connection pool. The pool works with the embedded server and with any PostgreSQL >= 15; only the URL differs. Drizzle gets no schema
 * object, because queries name their tables themselves and use no relational queries.
 */
import { Pool } from "pg";
import type { Log } from "../../shared/log.ts";
import { drizzleOn } from "./drizzle.ts";
import type { Db, InTx } from "./tx.ts";
import { transactionsOn } from "./tx.ts";

export type DatabaseOptions = {
  url: string;
  /** The maximum number of connections. */
  poolSize: number;
  /** The connection's name in pg_stat_activity, which tells the hub and its instance. */
  applicationName: string;
  log: Log;
  timeouts?: Partial<DatabaseTimeouts>;
};

/** All in milliseconds. */
export type DatabaseTimeouts = {
  /** To get a connection, including the wait for a free one. */
  connectMs: number;
  statementMs: number;
  lockMs: number;
  /** The server ends a transaction that is idle for this long, because its holder hangs or has forgotten it. */
  idleInTransactionMs: number;
};

export type Database = {
  /** For single statements. Writes that must succeed together use `inTx`. */
  db: Db;
  pool: Pool;
  inTx: InTx;
  /** Waits for running statements, then closes every connection. A second call is harmless. */
  close(): Promise<void>;
};

const DEFAULT_TIMEOUTS: DatabaseTimeouts = {
  connectMs: 10_000,
  statementMs: 30_000,
  lockMs: 10_000,
  idleInTransactionMs: 30_000,
};

/** Opens no connection yet. An unreachable database shows at the first statement. */
export function openDatabase(options: DatabaseOptions): Database {
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const pool = new Pool({
    connectionString: options.url,
    max: options.poolSize,
    application_name: options.applicationName,
    connectionTimeoutMillis: timeouts.connectMs,
    statement_timeout: timeouts.statementMs,
    lock_timeout: timeouts.lockMs,
    idle_in_transaction_session_timeout: timeouts.idleInTransactionMs,
    // The server enforces statement_timeout. This client-side timeout is for a server or network that no longer answers.
    query_timeout: timeouts.statementMs + 10_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    idleTimeoutMillis: 60_000,
    // JIT compilation takes longer than any of the hub's statements runs. A large table's cost estimate alone would trigger it.
    options: "-c TimeZone=UTC -c jit=off",
  });
  surviveLostConnections(pool, options.log);
  let closing: Promise<void> | undefined;
  return {
    db: drizzleOn(pool),
    pool,
    inTx: transactionsOn(pool),
    close: () => {
      closing ??= pool.end();
      return closing;
    },
  };
}

/**
 * pg emits 'error' on an idle client whose connection is cut. On a client in use pg emits 'error' and also rejects the query. Without a listener
 * either would end the process. The pool replaces idle clients, and `inTx` destroys broken clients.
 */
function surviveLostConnections(pool: Pool, log: Log): void {
  pool.on("error", (error) => log.warn("idle database connection lost", { error: error.message }));
  pool.on("connect", (client) => {
    client.on("error", (error) => log.warn("database connection lost", { error: error.message }));
  });
}
