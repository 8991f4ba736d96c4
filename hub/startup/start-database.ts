import type { Log } from "../../shared/log.ts";
import type { Secret } from "../../shared/secret.ts";
import { type Database, openDatabase } from "../db/client.ts";
import type { OnCommitted } from "../db/committed.ts";
import { startEmbeddedPostgres } from "../db/embedded/embedded-postgres.ts";
import { migrateAtStart, SchemaBehind } from "../db/migrate.ts";
import { watchServer } from "../db/server-watch.ts";
import { databaseFault } from "./database-fault.ts";

export interface DatabaseSettings {
  readonly databaseUrl: Secret | null;
  readonly embedded: { readonly binDir: string | null; readonly runAs: string | null };
  readonly databasePoolSize: number;
  readonly stateDir: string;
}

/**
 * Finds the database that the settings name, and changes nothing in it. Without a `databaseUrl`, `findDatabase` starts the embedded PostgreSQL server,
 * or uses the one that runs.
 */
export async function findDatabase(
  settings: DatabaseSettings,
  log: Log,
  closers: (() => unknown)[],
): Promise<{ url: string; kind: string }> {
  const url = settings.databaseUrl?.reveal();
  if (url !== undefined) return { url, kind: "DATABASE_URL" };
  const embedded = await startEmbeddedPostgres({
    stateDir: settings.stateDir,
    log: log.with({ part: "postgres" }),
    runAs: settings.embedded.runAs ?? undefined,
    ...(settings.embedded.binDir === null ? {} : { binDir: settings.embedded.binDir }),
  });
  closers.push(() => embedded.stop());
  return { url: embedded.url, kind: `embedded PostgreSQL ${embedded.version}` };
}

/** Runs `use` on the database, and names the setting in the error if the database of DATABASE_URL cannot be used. */
export async function withDatabaseFault<T>(settings: DatabaseSettings, url: string, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    throw settings.databaseUrl === null || error instanceof SchemaBehind ? error : databaseFault(url, error);
  }
}

/**
 * Opens the database that the settings name, and migrates it to the schema of this version of Muster if need be. `startDatabase` adds the functions
 * that close the database to `closers`.
 */
export async function startDatabase(
  settings: DatabaseSettings,
  applicationName: string,
  log: Log,
  closers: (() => unknown)[],
  onCommitted?: OnCommitted,
): Promise<{ opened: Database; url: string; kind: string }> {
  const { url, kind } = await findDatabase(settings, log, closers);
  await withDatabaseFault(settings, url, () => migrateAtStart(url));
  const opened = openDatabase({
    url,
    poolSize: settings.databasePoolSize,
    applicationName,
    log: log.with({ part: "database" }),
    ...(onCommitted === undefined ? {} : { onCommitted }),
  });
  closers.push(() => opened.close());
  const watch = watchServer({ url, applicationName, log: log.with({ part: "database" }) });
  closers.push(() => watch.close());
  await withDatabaseFault(settings, url, () => opened.pool.query("select 1"));
  return { opened, url, kind };
}
