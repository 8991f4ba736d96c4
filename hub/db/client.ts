/**
 * The hub's one connection pool. Works alike on the embedded server and on any PostgreSQL >= 15: only the URL differs.
 * Drizzle is given no schema object: queries name their tables themselves, and there are no relational queries.
 */
import { Pool } from "pg";
import type { Log } from "../log.ts";
import { drizzleOn } from "./drizzle.ts";
import type { Db, InTx } from "./tx.ts";
import { transactionsOn } from "./tx.ts";

export type DatabaseOptions = {
  url: string;
  /** Most connections at once. */
  poolSize: number;
  /** Seen in pg_stat_activity; name the hub and its instance. */
  applicationName: string;
  log: Log;
  timeouts?: Partial<DatabaseTimeouts>;
};

/** All in milliseconds. */
export type DatabaseTimeouts = {
  /** To get a connection: waiting for a free one and connecting. */
  connectMs: number;
  statementMs: number;
  lockMs: number;
  /** A transaction that does nothing for this long is ended by the server: its holder hangs or forgot it. */
  idleInTransactionMs: number;
};

export type Database = {
  /** For single statements. Writes that belong together go through `inTx`. */
  db: Db;
  pool: Pool;
  inTx: InTx;
  /** Waits for statements under way, then closes every connection. Safe to call twice. */
  close(): Promise<void>;
};

const DEFAULT_TIMEOUTS: DatabaseTimeouts = {
  connectMs: 10_000,
  statementMs: 30_000,
  lockMs: 10_000,
  idleInTransactionMs: 30_000,
};

/** Opens no connection yet: a database that is away shows at the first statement. */
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
    // The server enforces statement_timeout; this one is for a server or a network that no longer answers at all.
    query_timeout: timeouts.statementMs + 10_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    idleTimeoutMillis: 60_000,
    // Compiling a statement costs more than any of the hub's takes to run; a large table's estimate alone would have it done.
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
 * pg emits 'error' on an idle client whose connection is cut, and on a lent one beside rejecting its query. Without a
 * listener either would end the process. The pool replaces idle ones by itself; `inTx` destroys lent ones.
 */
function surviveLostConnections(pool: Pool, log: Log): void {
  pool.on("error", (error) => log.warn("idle database connection lost", { error: error.message }));
  pool.on("connect", (client) => {
    client.on("error", (error) => log.warn("database connection lost", { error: error.message }));
  });
}
