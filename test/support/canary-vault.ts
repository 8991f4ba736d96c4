import { z } from "zod";
import type { KvMount } from "../fakes/vault/kv.ts";
import { startVault, type VaultServer } from "../fakes/vault/server.ts";
import type { Vault } from "../fakes/vault/vault.ts";
import { hubPolicy } from "./vault-under-test.ts";

const Read = z.object({ data: z.object({ data: z.record(z.string(), z.string()).nullable() }) });
/** What lies beside secrets and is none: who logs in, certificates, times. */
const PUBLIC = /^user$|certificate|_until$/;
/** The database knows it too. */
const STORE_ID = /store-id$/;
const SHORTEST = 16;

/** The double of Vault that a hub keeps its secrets in, and what it holds. */
export class CanaryVault {
  readonly token: string;
  readonly #server: VaultServer;
  readonly #mount: KvMount;

  private constructor(server: VaultServer) {
    this.#server = server;
    this.#mount = server.vault.mount("kv");
    server.vault.tokens.policies.set("muster", hubPolicy("kv"));
    this.token = server.vault.tokens.create({ policies: ["muster"], ttl: 3600 });
  }

  static start = async (): Promise<CanaryVault> => new CanaryVault(await startVault());

  get url(): string {
    return this.#server.url;
  }
  get double(): Vault {
    return this.#server.vault;
  }

  /** Name and value of every secret field that lies there now: also those that the hub made by itself. */
  secrets(): (readonly [string, string])[] {
    return this.#mount
      .paths()
      .filter((path) => !STORE_ID.test(path))
      .flatMap((path) =>
        Object.entries(this.#read(path))
          .filter(([field, value]) => !PUBLIC.test(field) && value.length >= SHORTEST)
          .map(([field, value]) => [`${field} of ${path}`, value] as const),
      );
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
