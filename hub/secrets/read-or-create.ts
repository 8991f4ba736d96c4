import { type SecretData, SecretError, type SecretStore } from "./port.ts";

/** What lies at the path; where nothing does, what `make` gives. Of several hubs that start at once, all get the first one's. */
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

/** For what the database says was made: it is never made anew, as nobody outside would know what came of it. */
export async function readMade(secrets: SecretStore, path: string): Promise<SecretData> {
  try {
    return await secrets.read(path);
  } catch (error) {
    if (!(error instanceof SecretError) || error.code !== "secret_missing") throw error;
    throw new SecretError(
      "secret_corrupt",
      path,
      "A key that the database names is not there: the secret store is older than the database. Restore it from a newer backup",
      error,
    );
  }
}
