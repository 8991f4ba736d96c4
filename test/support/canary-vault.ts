import { writeFileSync } from "node:fs";
import { z } from "zod";
import type { KvMount } from "../fakes/vault/kv.ts";
import { startVault, type VaultServer } from "../fakes/vault/server.ts";
import type { RoleHandle } from "../fakes/vault/tokens.ts";
import type { Vault } from "../fakes/vault/vault.ts";
import { hubPolicy } from "./vault-under-test.ts";

const Read = z.object({ data: z.object({ data: z.record(z.string(), z.string()).nullable() }) });
/** Matches the names of fields in Vault that are no secrets: user names, certificates, times. */
const PUBLIC = /^user$|certificate|_until$/;
/** The id of the secret store is no secret, because the hub's database contains the id too. */
const STORE_ID = /store-id$/;
const SHORTEST = 16;

/** The simulated Vault in which a hub keeps its secrets, with a login by AppRole. */
export class CanaryVault {
  readonly #server: VaultServer;
  readonly #mount: KvMount;
  readonly #role: RoleHandle;
  readonly #secretIdFile: string;

  private constructor(server: VaultServer, secretIdFile: string) {
    this.#server = server;
    this.#mount = server.vault.mount("kv");
    server.vault.tokens.policies.set("muster", hubPolicy("kv"));
    this.#role = server.vault.tokens.addRole({ policies: ["muster"] });
    this.#secretIdFile = secretIdFile;
  }

  static start = async (secretIdFile: string): Promise<CanaryVault> =>
    new CanaryVault(await startVault(), secretIdFile);

  get hubEnv(): Record<string, string> {
    return {
      MUSTER_SECRETS: "vault",
      VAULT_ADDR: this.#server.url,
      VAULT_ROLE_ID: this.#role.roleId,
      VAULT_SECRET_ID_FILE: this.#secretIdFile,
    };
  }
  /** Gives the hub a secret ID for its AppRole login to Vault, by default a new and valid one. */
  giveSecretId(secretId: string = this.#role.newSecretId()): string {
    writeFileSync(this.#secretIdFile, secretId, { mode: 0o600 });
    return secretId;
  }
  get double(): Vault {
    return this.#server.vault;
  }

  /** Returns the names and values of all Vault tokens that the hub received, and of all secret fields in Vault. */
  secrets(): (readonly [string, string])[] {
    const tokens = this.double.tokens.issued.map(
      (token, index) => [`the hub's Vault token ${index + 1}`, token] as const,
    );
    const fields = this.#mount
      .paths()
      .filter((path) => !STORE_ID.test(path))
      .flatMap((path) =>
        Object.entries(this.#read(path))
          .filter(([field, value]) => !PUBLIC.test(field) && value.length >= SHORTEST)
          .map(([field, value]) => [`${field} of ${path}`, value] as const),
      );
    return [...tokens, ...fields];
  }

  #read(path: string): Readonly<Record<string, string>> {
    try {
      return Read.parse(this.#mount.read(path, new URLSearchParams()).body).data.data ?? {};
    } catch {
      // The simulated Vault throws an error when somebody has deleted the newest version of the secret.
      return {};
    }
  }

  close = (): Promise<void> => this.#server.close();
}
