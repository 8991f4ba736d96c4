import { isDeepStrictEqual } from "node:util";
import { type SecretData, SecretError, type SecretStore } from "../secrets/port.ts";
import type { NamedSecret } from "./named-secrets.ts";

/**
 * What became of one path. `absent`: it need not be there, and is not. `missing`: the database names it, and it is not in the source. `corrupt`: it cannot be
 * read there. `differs`: the target holds something else, which stays.
 */
export type Outcome = "copied" | "there_already" | "absent" | "missing" | "corrupt" | "differs";
export interface CopiedSecret {
  readonly path: string;
  readonly outcome: Outcome;
}
/**
 * One after another, each by check-and-set, read back and compared; the source is only read. So it may be stopped and run again at any point. Throws the
 * `SecretError` that keeps it from either store.
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
    // Somebody else was first: what is there then is compared like what is ours.
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
