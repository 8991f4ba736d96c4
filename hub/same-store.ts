import { randomUUID } from "node:crypto";
import { readSecretStoreId, recordSecretStoreId } from "./db/queries/installation.ts";
import type { Tx } from "./db/tx.ts";
import { SECRET_PATHS, SecretError, type SecretStore } from "./secrets/port.ts";

/**
 * Refuses a secret store that is not the one of this database. A hub that was given a folder of its own would else make a second CA there, and
 * its hosts and credentials would be strangers to the other hubs. Callers hold a lock, as several hubs may start at once.
 */
export async function ensureSameStore(tx: Tx, secrets: SecretStore): Promise<void> {
  const known = await readSecretStoreId(tx);
  const own = await readOwnId(secrets);
  if (known !== null && known !== own)
    throw new SecretError(
      "secret_store_unavailable",
      SECRET_PATHS.storeId,
      "This is not the secret store that belongs to the database. Set MUSTER_SHARED_DIR to the folder that the other hubs use, or restore it from a backup",
    );
  const id = own ?? randomUUID();
  if (own === null) await secrets.write(SECRET_PATHS.storeId, { id });
  if (known === null) await recordSecretStoreId(tx, id);
}

async function readOwnId(secrets: SecretStore): Promise<string | null> {
  try {
    return (await secrets.read(SECRET_PATHS.storeId))["id"] ?? null;
  } catch (error) {
    if (error instanceof SecretError && error.code === "secret_missing") return null;
    throw error;
  }
}
