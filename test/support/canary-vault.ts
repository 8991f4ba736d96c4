import { writeFileSync } from "node:fs";
import { z } from "zod";
import type { KvMount } from "../fakes/vault/kv.ts";
import { startVault, type VaultServer } from "../fakes/vault/server.ts";
import type { RoleHandle } from "../fakes/vault/tokens.ts";
import type { Vault } from "../fakes/vault/vault.ts";
import { hubPolicy } from "./vault-under-test.ts";

const Read = z.object({ data: z.object({ data: z.record(z.string(), z.string()).nullable() }) });
/** What lies beside secrets and is none: who logs in, certificates, times. */
const PUBLIC = /^user$|certificate|_until$/;
/** The database knows it too. */
const STORE_ID = /store-id$/;
const SHORTEST = 16;

/** The double of Vault that a hub keeps its secrets in and logs in to by AppRole, and what it holds. */
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

  /** How a hub is told of it. */
  get hubEnv(): Record<string, string> {
    return {
      MUSTER_SECRETS: "vault",
      VAULT_ADDR: this.#server.url,
      VAULT_ROLE_ID: this.#role.roleId,
      VAULT_SECRET_ID_FILE: this.#secretIdFile,
    };
  }
  /** One that is good, which a hub is given. */
  giveSecretId(secretId: string = this.#role.newSecretId()): string {
    writeFileSync(this.#secretIdFile, secretId, { mode: 0o600 });
    return secretId;
  }
  get double(): Vault {
    return this.#server.vault;
  }

  /** Name and value of every token that the hub has got, and of every secret field that lies there now: also those that the hub made by itself. */
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
      // It was deleted.
      return {};
    }
  }

  close = (): Promise<void> => this.#server.close();
}
