import { mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "pg";
import { VERSION } from "../../shared/version.ts";
import { namedSecrets } from "../copy-secrets/named-secrets.ts";
import { KNOWN_MIGRATIONS } from "../db/migrate.ts";
import { readSecretStoreId } from "../db/queries/installation.ts";
import type { Db } from "../db/tx.ts";
import type { SecretsSettings } from "../secrets/open.ts";
import { SECRET_PATHS, SecretError, type SecretStore } from "../secrets/port.ts";
import { dumpTables } from "./dump.ts";
import { fitOf, type Manifest } from "./manifest.ts";
import { keepSealedFiles, missingSecrets } from "./sealed-files.ts";
import { seal } from "./sums.ts";

export interface Backup {
  readonly folder: string;
  readonly manifest: Manifest;
  /** The number of sealed files in the backup. */
  readonly sealedFiles: number;
  /** The paths of secrets that the database names and that the secret store lacks. */
  readonly missing: readonly string[];
}

interface Source {
  readonly client: Client;
  readonly db: Db;
  readonly store: SecretsSettings;
  readonly secrets: SecretStore;
}

/**
 * Makes a folder below `parent` with the database of one moment, and with the sealed files of its secrets. The folder of a backup gets its final name
 * only when the backup is complete, so nobody takes an interrupted backup for a complete one.
 */
export async function makeBackup(source: Source, parent: string): Promise<Backup> {
  const work = join(parent, `.muster-backup-${process.pid}.partial`);
  await mkdir(work, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    throw new Error(`There is no folder ${parent} for the backup. Make the folder first, or name another one by --to.`);
  });
  try {
    const made = await fill(source, work);
    await seal(work);
    const name = `muster-backup-${made.manifest.taken_at.replaceAll(/[-:]|[.]\d+/g, "")}`;
    const folder = join(parent, name);
    await rename(work, folder);
    const handle = await open(parent, "r");
    await handle.sync().finally(() => handle.close());
    return { ...made, folder };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function fill({ client, db, store, secrets }: Source, work: string): Promise<Omit<Backup, "folder">> {
  const { dumped, found } = await dumpTables(client, work, async () => ({
    storeId: await readSecretStoreId(db),
    named: await namedSecrets(db),
  }));
  mustHaveOurSchema(dumped.migrations);
  if (found.storeId === null)
    throw new Error("No hub has started on this database yet, so there is nothing to back up.");
  const id = await secrets.read(SECRET_PATHS.storeId);
  if (id["id"] !== found.storeId)
    throw new SecretError(
      "secret_store_misconfigured",
      SECRET_PATHS.storeId,
      "This is not the secret store that belongs to the database. Run this command with the hub's own settings",
    );
  const sealedFiles =
    store.kind === "sealed_file" ? await keepSealedFiles(store.directory, join(work, "secrets"), found.named) : 0;
  const manifest: Manifest = {
    format: 1,
    hub_version: VERSION,
    ...dumped,
    store_id: found.storeId,
    secrets: store.kind,
  };
  await writeFile(join(work, "manifest.json"), `${JSON.stringify(manifest, null, 1)}\n`, { mode: 0o600 });
  return { manifest, sealedFiles, missing: await missingSecrets(secrets, found.named) };
}

/** Refuses a database with the schema of another version of Muster, because this program could leave out tables that it does not know. */
function mustHaveOurSchema(had: readonly number[]): void {
  const known = KNOWN_MIGRATIONS.map(({ when }) => when);
  if (had.length === known.length && fitOf(had, known).fits) return;
  throw new Error(
    `The database has the schema of another version of Muster than ${VERSION}. Make the backup with the version of the hubs that use the database.`,
  );
}
