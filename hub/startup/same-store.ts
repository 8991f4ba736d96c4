import { randomUUID } from "node:crypto";
import { readSecretStoreId, recordSecretStoreId } from "../db/queries/installation.ts";
import type { Db } from "../db/tx.ts";
import { SECRET_PATHS, SecretError, type SecretStore } from "../secrets/port.ts";
import { readOrCreate } from "../secrets/read-or-create.ts";

/**
 * Refuses a secret store that does not belong to the hub's database, and writes nothing into such a store. A hub with a secret store of its own would
 * create a second CA. Hubs with different CAs could not use each other's hosts and credentials.
 */
export async function ensureSameStore(db: Db, secrets: SecretStore): Promise<void> {
  if ((await readSecretStoreId(db)) === null) {
    const made = await readOrCreate(secrets, SECRET_PATHS.storeId, async () => ({ id: randomUUID() }));
    if (made["id"] !== undefined) await recordSecretStoreId(db, made["id"]);
  }
  if ((await readSecretStoreId(db)) === (await readStoreId(secrets))) return;
  throw new SecretError(
    "secret_store_misconfigured",
    SECRET_PATHS.storeId,
    "This is not the secret store that belongs to the database. Set MUSTER_SHARED_DIR to the folder, or VAULT_ADDR, VAULT_NAMESPACE and MUSTER_VAULT_MOUNT to the Vault, that the other hubs use, restore the store from a backup, or run copy-secrets to its end (docs/settings.md)",
  );
}

/** Reads the id that ties a secret store to its database. `readStoreId` returns undefined if the secret store belongs to no database yet. */
export async function readStoreId(secrets: SecretStore): Promise<string | undefined> {
  try {
    return (await secrets.read(SECRET_PATHS.storeId))["id"];
  } catch (error) {
    if (error instanceof SecretError && error.code === "secret_missing") return undefined;
    throw error;
  }
}
