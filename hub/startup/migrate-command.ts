import { createLog } from "../../shared/log.ts";
import { VERSION } from "../../shared/version.ts";
import { migrate } from "../db/migrate.ts";
import { type DatabaseSettings, findDatabase, withDatabaseFault } from "./start-database.ts";

export const isMigrateCommand = (words: readonly string[]): boolean => words.length === 1 && words[0] === "migrate";

/** Applies the pending migrations with the rights of the tables' owner, for hubs whose role may not change the schema (decision L3). */
export async function runMigrateCommand(settings: DatabaseSettings): Promise<void> {
  const closers: (() => unknown)[] = [];
  try {
    const { url } = await findDatabase(settings, createLog("warn"), closers);
    await withDatabaseFault(settings, url, () => migrate(url));
    process.stdout.write(`The database has the tables of Muster ${VERSION}.\n`);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}
