import { type SecretData, SecretError, type SecretStore, type SecretVersion } from "../../hub/secrets/port.ts";

/**
 * A secret store of a hub in memory, for tests. The field `awayFor` is the number of next calls of the store that fail. The field `entries` shows the
 * content of the secret store.
 */
export class MemorySecrets implements SecretStore {
  readonly entries = new Map<string, SecretData>();
  awayFor = 0;

  async read(path: string): Promise<SecretData> {
    return (await this.readVersion(path)).data;
  }
  async readVersion(path: string): Promise<{ data: SecretData; version: SecretVersion }> {
    this.#asked(path);
    const data = this.entries.get(path);
    if (data === undefined) throw new SecretError("secret_missing", path, "Nothing was written there");
    return { data, version: JSON.stringify(data) as SecretVersion };
  }
  async write(path: string, data: SecretData, replaces?: SecretVersion | "nothing"): Promise<void> {
    this.#asked(path);
    const present = this.entries.get(path);
    const version = present === undefined ? "nothing" : JSON.stringify(present);
    if (replaces !== undefined && replaces !== version)
      throw new SecretError("secret_conflict", path, "Written before");
    this.entries.set(path, { ...data });
  }
  async remove(path: string): Promise<void> {
    this.#asked(path);
    this.entries.delete(path);
  }
  async check(): Promise<void> {
    this.#asked("check");
  }

  #asked(path: string): void {
    if (this.awayFor <= 0) return;
    this.awayFor -= 1;
    throw new SecretError("secret_store_unavailable", path, "The secret store does not answer");
  }
}
