import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Log } from "../../shared/log.ts";
import { SecretError, type SecretStore } from "./port.ts";
import { openSealedFileStore } from "./sealed-file.ts";
import { openVaultStore } from "./vault.ts";
import type { VaultCredentials } from "./vault-login.ts";

export type SecretsSettings =
  | { readonly kind: "sealed_file"; readonly directory: string }
  | {
      readonly kind: "vault";
      readonly url: string;
      readonly namespace: string | null;
      readonly caFile: string | null;
      readonly deadlineMs: number;
      readonly mount: string;
      readonly credentials: VaultCredentials;
    };

/** `openSecrets` sends nothing to Vault, because Vault may be unreachable at the hub's start. */
export async function openSecrets(
  settings: SecretsSettings,
  log: Log,
): Promise<{ secrets: SecretStore; close: () => void }> {
  if (settings.kind === "sealed_file") return { secrets: await openSealedFileStore(settings), close: () => undefined };
  const { url, namespace, deadlineMs, caFile, mount, credentials } = settings;
  const ca = caFile === null ? null : await readCa(caFile);
  const store = openVaultStore({ address: { url, namespace, deadlineMs, ca }, mount, credentials, log });
  return { secrets: store, close: () => store.close() };
}

async function readCa(file: string): Promise<string> {
  const refuse = (fault: string, cause: unknown): SecretError =>
    new SecretError("secret_store_misconfigured", "VAULT_CACERT", `${fault}: ${file}. Name Vault's CA in PEM`, cause);
  const pem = await readFile(file, "utf8").catch((error: unknown) => {
    throw refuse("The file that VAULT_CACERT names cannot be read", error);
  });
  try {
    new X509Certificate(pem);
  } catch (error) {
    throw refuse("The file that VAULT_CACERT names holds no certificate in PEM", error);
  }
  return pem;
}
