import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "pg";
import { VERSION } from "../../shared/version.ts";
import { namedSecrets } from "../copy-secrets/named-secrets.ts";
import { lockMigrations } from "../db/advisory-locks.ts";
import { KNOWN_MIGRATIONS } from "../db/migrate.ts";
import { connectedHubs } from "../db/queries/connected-hubs.ts";
import type { Tx } from "../db/tx.ts";
import type { SecretsSettings } from "../secrets/open.ts";
import type { SecretStore } from "../secrets/port.ts";
import { type AfterRestore, afterRestore, type Held } from "./after-restore.ts";
import { dropAll, foreignFunctions, foreignTables, functionsOf, LOAD_SETTINGS, loadTables, tablesOf } from "./load.ts";
import { fitOf, Manifest } from "./manifest.ts";
import { giveBackSealedFiles, missingSecrets } from "./sealed-files.ts";
import { DamagedBackup, mustBeWhole } from "./sums.ts";

export interface Restored {
  readonly manifest: Manifest;
  readonly addedSecrets: number;
  /** The paths of secrets that the restored database names and that the secret store lacks. */
  readonly missing: readonly string[];
  readonly held: Held;
}

/** Reads a backup, and throws before anything is changed if the backup is damaged or not of this version of Muster. */
export async function readBackup(folder: string): Promise<Manifest> {
  await mustBeWhole(folder);
  const parsed = Manifest.safeParse(JSON.parse(await readFile(join(folder, "manifest.json"), "utf8")));
  if (!parsed.success)
    throw new DamagedBackup(
      `The backup ${folder} has a form that Muster ${VERSION} does not know. Use the version that made it.`,
    );
  const fit = fitOf(
    parsed.data.migrations,
    KNOWN_MIGRATIONS.map(({ when }) => when),
  );
  if (!fit.fits)
    throw new DamagedBackup(
      fit.why === "newer"
        ? `The backup is of Muster ${parsed.data.hub_version}, which is newer than this Muster ${VERSION}. Restore it with that version or a later one.`
        : `The backup has database migrations that Muster ${VERSION} never had. Restore it with the program that made it.`,
    );
  return parsed.data;
}

interface Target {
  readonly client: Client;
  readonly tx: Tx;
  readonly store: SecretsSettings;
  readonly openStore: () => Promise<SecretStore>;
}

/**
 * Replaces the content of the database by that of the backup, in one transaction. If the restore is killed, or if any step fails, the database keeps
 * its former content. A hub that starts during a restore waits for the lock of migrations.
 */
export async function restoreBackup(
  { client, tx, store, openStore }: Target,
  folder: string,
  options: AfterRestore & { readonly replace: boolean },
): Promise<Restored> {
  const manifest = await readBackup(folder);
  await client.query(LOAD_SETTINGS);
  await refuseWhileHubsRun(tx);
  await lockMigrations(client);
  const present = await tablesOf(client);
  const foreign = [...foreignTables(present, manifest), ...foreignFunctions(await functionsOf(client))];
  refuseToOverwrite(present, foreign, options.replace);
  const addedSecrets =
    store.kind === "sealed_file" && manifest.secrets === "sealed_file"
      ? await giveBackSealedFiles(join(folder, "secrets"), store.directory, manifest.store_id)
      : 0;
  const secrets = await openStore();
  await secrets.check();
  await client.query("begin");
  try {
    await dropAll(client);
    await loadTables(client, folder, manifest);
    const held = await afterRestore(tx, manifest, options);
    const missing = await missingSecrets(secrets, await namedSecrets(tx));
    // A hub that had lost its connection to the database may have connected again during the restore.
    await refuseWhileHubsRun(tx);
    // Without fresh statistics, PostgreSQL plans its queries as if large tables were small, until its own analysis comes minutes later.
    await client.query("analyze");
    await client.query("commit");
    return { manifest, addedSecrets, missing, held };
  } catch (error) {
    await client.query("rollback").catch(() => undefined);
    throw error;
  }
}

async function refuseWhileHubsRun(db: Tx): Promise<void> {
  const hubs = await connectedHubs(db);
  if (hubs.length > 0)
    throw new Error(
      `A hub runs on this database (${hubs.join(", ")}). Nothing was changed. Stop every hub of this database, then run this command again.`,
    );
}

function refuseToOverwrite(present: readonly string[], foreign: readonly string[], replace: boolean): void {
  if (foreign.length > 0)
    throw new Error(
      `The database has tables or functions that are not Muster's (${foreign.slice(0, 5).join(", ")}). Nothing was changed. Restore into a database of its own.`,
    );
  if (present.length > 0 && !replace)
    throw new Error(
      "The database is not empty. Nothing was changed. Restore into an empty database, or give --replace to remove everything that the database has now.",
    );
}
