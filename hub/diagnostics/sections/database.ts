import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { KNOWN_MIGRATIONS } from "../../db/migrate.ts";
import { sql } from "../../db/orm.ts";
import type { Tx } from "../../db/tx.ts";
import { bounded, iso, OF } from "../rows.ts";
import { databaseSection } from "../section.ts";

const MOST_CONNECTIONS = 50;
const MOST_MIGRATIONS = 200;

const Server = z.strictObject({
  version: z.string(),
  started_at: Timestamp,
  in_recovery: z.boolean(),
  bytes: z.number(),
  most_connections: z.int(),
  clock: z.number(),
});
const Connections = z.strictObject({
  application_name: z.string(),
  /** The state of a group of database connections; null for the connections of other database users, whose state PostgreSQL does not show. */
  state: z.string().nullable(),
  count: z.int(),
  waiting_for_locks: z.int(),
  oldest_transaction_seconds: z.int().nullable(),
});

const readServer = async (tx: Tx) => {
  const { rows } = await tx.execute<z.input<typeof Server>>(sql`
    select current_setting('server_version') as version, ${iso("pg_postmaster_start_time()")} as started_at,
      pg_is_in_recovery() as in_recovery, pg_database_size(current_database())::float8 as bytes,
      current_setting('max_connections')::int as most_connections,
      extract(epoch from clock_timestamp())::float8 * 1000 as clock`);
  const { clock, ...server } = Server.parse(rows[0]);
  return { ...server, clock_behind_hub_ms: Math.round(Date.now() - clock) };
};

const readConnections = async (tx: Tx) => {
  const { rows } = await tx.execute<z.input<typeof Connections> & { of: number }>(sql`
    select coalesce(application_name, '') as application_name, state, count(*)::int as count,
      (count(*) filter (where wait_event_type = 'Lock'))::int as waiting_for_locks,
      max(extract(epoch from clock_timestamp() - xact_start))::int as oldest_transaction_seconds, ${OF}
    from pg_stat_activity where datname = current_database()
    group by 1, 2 order by 3 desc, 1, 2 limit ${MOST_CONNECTIONS}`);
  return bounded("connections", rows);
};

/** The diagnostics show no name for a migration that a newer hub made. */
const readMigrations = async (tx: Tx) => {
  const { rows } = await tx.execute<{ made_at: number; of: number }>(sql`
    select created_at::float8 as made_at, ${OF} from drizzle.__drizzle_migrations
    order by created_at desc limit ${MOST_MIGRATIONS}`);
  const { shown, leftOut } = bounded("migrations.applied", rows);
  const newest = shown[0]?.made_at ?? 0;
  return {
    leftOut,
    migrations: {
      applied: shown.map(({ made_at }) => ({
        name: KNOWN_MIGRATIONS.find(({ when }) => when === made_at)?.tag ?? null,
        made_at: new Date(made_at).toISOString(),
      })),
      missing: KNOWN_MIGRATIONS.filter(({ when }) => when > newest).map(({ tag }) => tag),
    },
  };
};

export const database = databaseSection({
  name: "database",
  about: "The PostgreSQL server, who is connected to it, and the migrations that were applied",
  data: z.strictObject({
    ...Server.omit({ clock: true }).shape,
    clock_behind_hub_ms: z.int(),
    connections: z.array(Connections),
    migrations: z.strictObject({
      applied: z.array(z.strictObject({ name: z.string().nullable(), made_at: Timestamp })),
      missing: z.array(z.string()),
    }),
  }),
  read: async (tx) => {
    const server = await readServer(tx);
    const connections = await readConnections(tx);
    const { migrations, leftOut } = await readMigrations(tx);
    return {
      data: { ...server, connections: connections.shown, migrations },
      leftOut: [...connections.leftOut, ...leftOut],
    };
  },
});
