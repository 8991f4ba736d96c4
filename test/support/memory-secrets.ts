import { type SecretData, SecretError, type SecretStore, type SecretVersion } from "../../hub/secrets/port.ts";

/** A hub's secret store in memory, for tests. The field `awayFor` is the number of calls that the secret store refuses before it works. */
export class MemorySecrets implements SecretStore {
  readonly entries = new Map<string, SecretData>();
  awayFor = 0;
  /** The version of a secret contains no part of the secret, because the hub stores versions in its database. */
  readonly #writes = new Map<string, number>();

  async read(path: string): Promise<SecretData> {
    return (await this.readVersion(path)).data;
  }
  async readVersion(path: string): Promise<{ data: SecretData; version: SecretVersion }> {
    this.#asked(path);
    const data = this.entries.get(path);
    if (data === undefined) throw new SecretError("secret_missing", path, "Nothing was written there");
    return { data, version: this.#version(path) };
  }
  async write(path: string, data: SecretData, replaces?: SecretVersion | "nothing"): Promise<void> {
    this.#asked(path);
    const version = this.entries.has(path) ? this.#version(path) : "nothing";
    if (replaces !== undefined && replaces !== version)
      throw new SecretError("secret_conflict", path, "Written before");
    this.#writes.set(path, (this.#writes.get(path) ?? 0) + 1);
    this.entries.set(path, { ...data });
  }
  async remove(path: string): Promise<void> {
    this.#asked(path);
    this.entries.delete(path);
  }
  async check(): Promise<void> {
    this.#asked("check");
  }

  #version(path: string): SecretVersion {
    return String(this.#writes.get(path) ?? 0) as SecretVersion;
  }

  #asked(path: string): void {
    if (this.awayFor <= 0) return;
    this.awayFor -= 1;
    throw new SecretError("secret_store_unavailable", path, "The secret store does not answer");
  }
}
