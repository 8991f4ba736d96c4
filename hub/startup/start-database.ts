import type { Log } from "../../shared/log.ts";
import type { Secret } from "../../shared/secret.ts";
import { type Database, openDatabase } from "../db/client.ts";
import type { OnCommitted } from "../db/committed.ts";
import { startEmbeddedPostgres } from "../db/embedded/embedded-postgres.ts";
import { migrate } from "../db/migrate.ts";
import { databaseFault } from "./database-fault.ts";

export interface DatabaseSettings {
  readonly databaseUrl: Secret | null;
  readonly embedded: { readonly binDir: string | null; readonly runAs: string | null };
  readonly databasePoolSize: number;
  readonly stateDir: string;
}

/**
 * Opens the database that the settings name, and migrates it to the schema of this version of Muster. Without a `databaseUrl`, `startDatabase` uses
 * the embedded PostgreSQL server. `startDatabase` adds the functions that close the database to `closers`.
 */
export async function startDatabase(
  settings: DatabaseSettings,
  applicationName: string,
  log: Log,
  closers: (() => unknown)[],
  onCommitted?: OnCommitted,
): Promise<{ opened: Database; url: string; kind: string }> {
  let url = settings.databaseUrl?.reveal();
  let kind = "DATABASE_URL";
  if (url === undefined) {
    const embedded = await startEmbeddedPostgres({
      stateDir: settings.stateDir,
      log: log.with({ part: "postgres" }),
      runAs: settings.embedded.runAs ?? undefined,
      ...(settings.embedded.binDir === null ? {} : { binDir: settings.embedded.binDir }),
    });
    closers.push(() => embedded.stop());
    url = embedded.url;
    kind = `embedded PostgreSQL ${embedded.version}`;
  }
  try {
    await migrate(url);
  } catch (error) {
    throw settings.databaseUrl === null ? error : databaseFault(url, error);
  }
  const opened = openDatabase({
    url,
    poolSize: settings.databasePoolSize,
    applicationName,
    log: log.with({ part: "database" }),
    ...(onCommitted === undefined ? {} : { onCommitted }),
  });
  closers.push(() => opened.close());
  return { opened, url, kind };
}
