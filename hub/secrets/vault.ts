import { z } from "zod";
import type { Log } from "../../shared/log.ts";
import type { Secret } from "../../shared/secret.ts";
import { type Replaces, type SecretData, SecretError, type SecretStore, type SecretVersion } from "./port.ts";
import { createVaultApi, type VaultAddress, type VaultAnswer, type VaultApi } from "./vault-api.ts";
import { type LeaseClock, systemClock, type VaultCredentials, VaultLogin } from "./vault-login.ts";

export interface VaultOptions {
  readonly address: VaultAddress;
  readonly credentials: VaultCredentials;
  /** The mount path of Vault's KV version 2. In Vault, the mount path replaces `kv` at the beginning of a secret's path. */
  readonly mount: string;
  readonly log: Log;
  /** The clock that times the Vault token's lease; the default is the system's clock. */
  readonly clock?: LeaseClock;
}
export interface VaultStore extends SecretStore {
  close(): void;
}

/**
 * Vault's answer about one version of a secret. For a deleted or destroyed version of a secret, Vault answers 404, but the answer names the version.
 */
const Versioned = z.object({ data: z.object({ data: z.unknown(), metadata: z.object({ version: z.int() }) }) });
/**
 * Vault's answer if nothing was ever written at the path, or if the secret was removed. An answer 404 without an empty list `errors` comes from
 * something other than Vault's KV version 2, for example from another secrets engine.
 */
const Absent = z.object({ errors: z.array(z.string()).max(0) });
const Written = z.object({ data: z.object({ version: z.int() }) });
const Values = z.record(z.string(), z.string());
const Mounted = z.object({
  data: z.object({ path: z.string(), options: z.object({ version: z.string().optional() }).nullish() }),
});

/**
 * The newest version of the secret at a path of Vault, and whether the secret is present. Version 0 of a path in Vault means that nothing was ever
 * written at the path. If a secret existed but is not present now, the next write must name the secret's last version.
 */
interface StoreAnswer {
  readonly version: number;
  readonly present: boolean;
  readonly data: unknown;
}

/** Makes the secret store that uses HashiCorp Vault, KV version 2 (decision P3). `openVaultStore` sends nothing to Vault before the first call. */
export function openVaultStore(options: VaultOptions): VaultStore {
  const api = createVaultApi(options.address);
  const { clock = systemClock, credentials, log } = options;
  const login = new VaultLogin({ api, credentials, clock, log });
  const store = new KvStore(api, login, options);
  return {
    read: async (path) => (await store.read(path)).data,
    readVersion: (path) => store.read(path),
    write: (path, data, replaces) => store.write(path, data, replaces),
    remove: (path) => store.remove(path),
    check: () => store.check(),
    close: () => login.close(),
  };
}

class KvStore {
  readonly #api: VaultApi;
  readonly #login: VaultLogin;
  readonly #mount: string;
  readonly #url: string;

  constructor(api: VaultApi, login: VaultLogin, options: VaultOptions) {
    this.#api = api;
    this.#login = login;
    this.#mount = options.mount;
    this.#url = options.address.url;
  }

  async read(path: string): Promise<{ data: SecretData; version: SecretVersion }> {
    const { version, present, data } = await this.#look(path);
    if (!present)
      throw new SecretError(
        "secret_missing",
        path,
        `There is no such secret in Vault below ${this.#mount}; write it first`,
      );
    const values = Values.safeParse(data);
    // The error for an unreadable secret leaves out the findings of the zod parser on purpose, because the findings may quote the secret.
    if (!values.success)
      throw new SecretError(
        "secret_corrupt",
        path,
        "The secret in Vault contains other values than texts. Write it again with the hub's API",
      );
    return { data: values.data, version: String(version) as SecretVersion };
  }

  /**
   * Every write to Vault is check-and-set, because a mount of Vault may require check-and-set. If the caller of `write` names no version, the write
   * replaces the newest version of the secret.
   */
  async write(path: string, data: SecretData, replaces?: Replaces): Promise<void> {
    const cas = await this.#expected(path, replaces);
    const body = { options: { cas }, data };
    const answer = await this.#ask("POST", this.#place("data", path), body);
    if (answer.ok && Written.safeParse(answer.body).success) return;
    // Vault's KV version 1 also accepts a check-and-set write for KV version 2, and stores the secret without a check of its version.
    if (answer.ok || answer.status === 404) throw this.#noKv(path);
    if (answer.status === 400 && answer.errors.some((error) => error.includes("check-and-set parameter did not match")))
      throw new SecretError(
        "secret_conflict",
        path,
        "Somebody else wrote the secret at the same time, and this write had no effect. Look which one is right, then write again",
      );
    throw this.#refused(answer.status, path, "create and update");
  }

  /**
   * Removes the secret's metadata in Vault, and with the metadata every version. If the hub only deleted the versions of a secret, somebody could
   * restore them.
   *
   * Vault's KV version 2 has no check-and-set for a removal, so `remove` also removes a version that somebody wrote just before the call. A caller
   * that wants to remove one known version of a secret first records its intent, which makes the API refuse writes of that secret, and then calls
   * `remove`.
   */
  async remove(path: string): Promise<void> {
    const answer = await this.#ask("DELETE", this.#place("metadata", path));
    if (answer.ok) return;
    if (answer.status === 404) throw this.#noKv(path);
    throw this.#refused(answer.status, path, "delete");
  }

  /**
   * Asks Vault which mount contains the configured path, as Vault's own command line does before it uses a path. The path of the mount in Vault's
   * answer may be shorter than the configured path.
   */
  async check(): Promise<void> {
    const place = `sys/internal/ui/mounts/${this.#mount}`;
    const answer = await this.#ask("GET", place);
    if (!answer.ok && answer.status === 403)
      throw new SecretError(
        "secret_store_misconfigured",
        this.#mount,
        `Vault at ${this.#url} has nothing mounted at ${this.#mount}, or the hub's policy does not allow its use. Mount KV version 2 there or set MUSTER_VAULT_MOUNT, and give the hub the policy of docs/settings.md`,
      );
    const mounted = Mounted.safeParse(answer.body);
    const found = answer.ok && mounted.success ? mounted.data.data : null;
    if (found?.path !== `${this.#mount}/` || found.options?.version !== "2") throw this.#noKv(this.#mount);
  }

  async #look(path: string): Promise<StoreAnswer> {
    const answer = await this.#ask("GET", this.#place("data", path));
    if (!answer.ok && answer.status !== 404) throw this.#refused(answer.status, path, "read");
    const found = Versioned.safeParse(answer.body);
    if (found.success)
      return { version: found.data.data.metadata.version, present: answer.ok, data: found.data.data.data };
    if (answer.ok || !Absent.safeParse(answer.body).success) throw this.#noKv(path);
    return { version: 0, present: false, data: null };
  }

  /**
   * Returns the version that a check-and-set write to the path in Vault must name. A secret that was deleted in Vault but not removed still has
   * versions, so the next version at its path is not version 1.
   */
  async #expected(path: string, replaces: Replaces | undefined): Promise<number> {
    if (replaces !== undefined && replaces !== "nothing") return Number(replaces);
    const { version, present } = await this.#look(path);
    return replaces === "nothing" && present ? 0 : version;
  }

  /**
   * Calls Vault, and repeats a refused call with another token, because a refused call had no effect. `#ask` calls Vault a third time if the second
   * token was revoked before the second call arrived.
   */
  async #ask(method: "GET" | "POST" | "DELETE", place: string, body?: unknown): Promise<VaultAnswer> {
    const call = (token: Secret): Promise<VaultAnswer> => this.#api({ method, path: place, token, body });
    const token = await this.#login.token();
    const first = await call(token);
    if (!isForbidden(first)) return first;
    const another = await this.#login.another(token);
    if (another === null) return first;
    const second = await call(another);
    if (!isForbidden(second)) return second;
    const yetAnother = this.#login.yetAnother(another);
    return yetAnother === null ? second : call(yetAnother);
  }

  #place(kind: "data" | "metadata", path: string): string {
    return `${this.#mount}/${kind}/${path.replace(/^kv\//, "")}`;
  }

  #refused(status: number, path: string, rights: string): SecretError {
    if (status === 403)
      return new SecretError(
        "secret_store_forbidden",
        path,
        `Vault does not let the hub ${rights} below ${this.#mount}. Give its policy these rights (docs/settings.md); no restart is needed, and a new policy of its role takes effect within a minute`,
      );
    if (status === 413)
      return new SecretError(
        "secret_store_misconfigured",
        path,
        `Vault at ${this.#url}, or a proxy in front of it, refuses a request of this size. Raise its limit`,
      );
    return new SecretError(
      "secret_store_unavailable",
      path,
      `Vault at ${this.#url} refused the call with HTTP status ${status}. Look at its log and its quotas`,
    );
  }

  #noKv(path: string): SecretError {
    return new SecretError(
      "secret_store_misconfigured",
      path,
      `Vault at ${this.#url} has no KV version 2 mounted at ${this.#mount}. Mount it there, or set MUSTER_VAULT_MOUNT to where it is`,
    );
  }
}

const isForbidden = (answer: VaultAnswer): boolean => !answer.ok && answer.status === 403;
