import type { Secret } from "../../shared/secret.ts";
import { type Database, openDatabase } from "../db/client.ts";
import { startEmbeddedPostgres } from "../db/embedded/embedded-postgres.ts";
import { migrate } from "../db/migrate.ts";
import type { Log } from "../log.ts";

export interface DatabaseSettings {
  readonly databaseUrl: Secret | null;
  readonly embedded: { readonly binDir: string | null; readonly runAs: string | null };
  readonly databasePoolSize: number;
  readonly stateDir: string;
}

/** The database of the settings, with this version's schema; the embedded one is started where it does not run. What it opens is closed by `closers`. */
export async function startDatabase(
  settings: DatabaseSettings,
  applicationName: string,
  log: Log,
  closers: (() => unknown)[],
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
  await migrate(url);
  const opened = openDatabase({
    url,
    poolSize: settings.databasePoolSize,
    applicationName,
    log: log.with({ part: "database" }),
  });
  closers.push(() => opened.close());
  return { opened, url, kind };
}
