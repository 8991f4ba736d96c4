import { isDeepStrictEqual } from "node:util";
import { type SecretData, SecretError, type SecretStore } from "../secrets/port.ts";
import type { NamedSecret } from "./named-secrets.ts";

/**
 * The result of copying one secret, which has the same path in the source store and in the target store. `absent`: an optional secret is not in the
 * source store. `missing`: the database names the secret, but the source store does not have it. `corrupt`: the secret's value in the source store
 * cannot be read. `differs`: the target store already holds another value of the secret, and keeps that other value.
 */
export type Outcome = "copied" | "there_already" | "absent" | "missing" | "corrupt" | "differs";
export interface CopiedSecret {
  readonly path: string;
  readonly outcome: Outcome;
}
/**
 * `copySecrets` writes each secret by check-and-set, reads it back and compares it, and never changes the source store. An operator may stop and
 * repeat the copy of the secrets at any time. If one of the two stores cannot be used, `copySecrets` throws that store's `SecretError`.
 */
export async function* copySecrets(
  secrets: readonly NamedSecret[],
  source: SecretStore,
  target: SecretStore,
): AsyncGenerator<CopiedSecret> {
  for (const { path, needed } of secrets) {
    const data = await valueAt(source, path);
    if (data === "corrupt") yield { path, outcome: "corrupt" };
    else if (data === "nothing") yield { path, outcome: needed ? "missing" : "absent" };
    else yield { path, outcome: await copyOne(path, data, target) };
  }
}

export async function copyOne(path: string, data: SecretData, target: SecretStore): Promise<Outcome> {
  const present = await valueAt(target, path);
  if (present !== "nothing") return isDeepStrictEqual(present, data) ? "there_already" : "differs";
  try {
    await target.write(path, data, "nothing");
  } catch (error) {
    // If another process has written the secret to the target store in the meantime, the write is refused. If the value that another process wrote to
    // the target store equals the source store's value, the secret counts as copied.
    if (!(error instanceof SecretError) || error.code !== "secret_conflict") throw error;
  }
  return isDeepStrictEqual(await valueAt(target, path), data) ? "copied" : "differs";
}

async function valueAt(store: SecretStore, path: string): Promise<SecretData | "nothing" | "corrupt"> {
  try {
    return await store.read(path);
  } catch (error) {
    if (error instanceof SecretError && error.code === "secret_missing") return "nothing";
    if (error instanceof SecretError && error.code === "secret_corrupt") return "corrupt";
    throw error;
  }
}
