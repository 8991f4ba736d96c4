import { type SecretData, SecretError, type SecretStore } from "./port.ts";

/**
 * Reads the secret at a path. If the path has no secret, `readOrCreate` creates the secret with `make`. If several hubs start at once, all hubs get
 * the secret that the first hub created.
 */
export async function readOrCreate(
  secrets: SecretStore,
  path: string,
  make: () => Promise<SecretData>,
): Promise<SecretData> {
  try {
    return await secrets.read(path);
  } catch (error) {
    if (!(error instanceof SecretError) || error.code !== "secret_missing") throw error;
  }
  const made = await make();
  try {
    await secrets.write(path, made, "nothing");
    return made;
  } catch (error) {
    if (!(error instanceof SecretError) || error.code !== "secret_conflict") throw error;
    return secrets.read(path);
  }
}

/**
 * Reads a secret that exists according to the database. If the secret is missing, `readMade` throws and creates no new secret, because hosts would
 * not know the new key.
 */
export async function readMade(secrets: SecretStore, path: string): Promise<SecretData> {
  try {
    return await secrets.read(path);
  } catch (error) {
    if (!(error instanceof SecretError) || error.code !== "secret_missing") throw error;
    throw new SecretError(
      "secret_corrupt",
      path,
      "A key that the database names is missing, so the secret store is older than the database. Restore the store from a newer backup",
      error,
    );
  }
}
