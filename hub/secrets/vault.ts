import { z } from "zod";
import type { Log } from "../log.ts";
import { type Replaces, type SecretData, SecretError, type SecretStore, type SecretVersion } from "./port.ts";
import { createVaultApi, type VaultAddress, type VaultAnswer, type VaultApi } from "./vault-api.ts";
import { type Timer, type VaultCredentials, VaultLogin } from "./vault-login.ts";

export interface VaultOptions {
  readonly address: VaultAddress;
  readonly credentials: VaultCredentials;
  /** Where KV version 2 is mounted; it stands in the place of `kv` at the head of a secret's path. */
  readonly mount: string;
  readonly log: Log;
  /** As the system keeps time. */
  readonly timer?: Timer;
}
export interface VaultStore extends SecretStore {
  /** Ends the renewal of the token. */
  close(): void;
}

const Values = z.object({
  data: z.object({ data: z.record(z.string(), z.string()), metadata: z.object({ version: z.int() }) }),
});
/** A version that was deleted is told with a 404, which names it all the same. */
const Deleted = z.object({ data: z.object({ metadata: z.object({ version: z.int() }) }) });
const Mounted = z.object({ data: z.object({ options: z.object({ version: z.string() }).nullish() }) });

const systemTimer: Timer = (ms, run) => {
  const timer = setTimeout(run, Math.min(ms, 2 ** 31 - 1)).unref();
  return () => clearTimeout(timer);
};

/** Secrets in HashiCorp Vault, KV version 2 (decision P3). Nothing is asked before the first call. */
export function openVaultStore(options: VaultOptions): VaultStore {
  const api = createVaultApi(options.address);
  const { timer = systemTimer, credentials, log } = options;
  const login = new VaultLogin({ api, credentials, timer, log });
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
    const answer = await this.#ask("GET", this.#place("data", path));
    if (!answer.ok && answer.status === 404) {
      if (noMount(answer)) throw this.#noMount(path);
      throw new SecretError(
        "secret_missing",
        path,
        `There is no such secret in Vault below ${this.#mount}; write it first`,
      );
    }
    if (!answer.ok) throw this.#refused(answer.status, path, "read");
    const parsed = Values.safeParse(answer.body);
    // What zod found is left out on purpose: it may quote what it read.
    if (!parsed.success)
      throw new SecretError(
        "secret_corrupt",
        path,
        "The secret in Vault is not made of texts alone. Write it again, by the hub's API",
      );
    const { data, metadata } = parsed.data.data;
    return { data, version: String(metadata.version) as SecretVersion };
  }

  /** Always check-and-set: without a version of the caller's it is the newest one, since a mount may ask for one with each write. */
  async write(path: string, data: SecretData, replaces?: Replaces): Promise<void> {
    const cas = replaces === undefined ? await this.#newest(path) : await this.#expected(path, replaces);
    const body = { options: { cas }, data };
    const answer = await this.#ask("POST", this.#place("data", path), body);
    if (answer.ok) return;
    if (answer.status === 404) throw this.#noMount(path);
    if (answer.status === 400 && answer.errors.some((error) => error.includes("check-and-set parameter did not match")))
      throw new SecretError(
        "secret_conflict",
        path,
        "Somebody else wrote the secret at the same time, and this write had no effect. Look which one is right, then write again",
      );
    throw this.#refused(answer.status, path, "create and update");
  }

  /** The metadata go, and every version with them: a version that is only deleted could be undeleted. */
  async remove(path: string): Promise<void> {
    const answer = await this.#ask("DELETE", this.#place("metadata", path));
    if (answer.ok) return;
    if (answer.status === 404) throw this.#noMount(path);
    throw this.#refused(answer.status, path, "delete");
  }

  /** As Vault's own command line asks before it uses a path. */
  async check(): Promise<void> {
    const place = `sys/internal/ui/mounts/${this.#mount}`;
    const answer = await this.#ask("GET", place);
    if (!answer.ok && answer.status === 403)
      throw new SecretError(
        "secret_store_misconfigured",
        this.#mount,
        `Vault at ${this.#url} has nothing mounted at ${this.#mount}, or no policy of the hub's lets it use that. Mount KV version 2 there or set MUSTER_VAULT_MOUNT, and give the hub the policy of docs/settings.md`,
      );
    const mounted = Mounted.safeParse(answer.body);
    if (!answer.ok || !mounted.success || mounted.data.data.options?.version !== "2")
      throw new SecretError(
        "secret_store_misconfigured",
        this.#mount,
        `What Vault at ${this.#url} has mounted at ${this.#mount} is not KV version 2. Set MUSTER_VAULT_MOUNT to where that is`,
      );
  }

  async #newest(path: string): Promise<number> {
    const answer = await this.#ask("GET", this.#place("data", path));
    const parsed = Deleted.safeParse(answer.body);
    if (parsed.success) return parsed.data.data.metadata.version;
    if (answer.ok || answer.status === 404) return 0;
    throw this.#refused(answer.status, path, "read");
  }

  /** What was deleted, and not removed, still counts versions: nothing is there, and the next version is not the first. */
  async #expected(path: string, replaces: Replaces): Promise<number> {
    if (replaces !== "nothing") return Number(replaces);
    const answer = await this.#ask("GET", this.#place("data", path));
    const deleted = Deleted.safeParse(answer.body);
    return !answer.ok && answer.status === 404 && deleted.success ? deleted.data.data.metadata.version : 0;
  }

  /** A call that is refused for want of a token had no effect, so it is made once more with a new one. */
  async #ask(method: "GET" | "POST" | "DELETE", place: string, body?: unknown): Promise<VaultAnswer> {
    const token = await this.#login.token();
    const answer = await this.#api({ method, path: place, token, body });
    if (answer.ok || answer.status !== 403 || !(await this.#login.isGone(token))) return answer;
    return await this.#api({ method, path: place, token: await this.#login.token(), body });
  }

  #place(kind: "data" | "metadata", path: string): string {
    return `${this.#mount}/${kind}/${path.replace(/^kv\//, "")}`;
  }

  #refused(status: number, path: string, rights: string): SecretError {
    return status === 403
      ? new SecretError(
          "secret_store_forbidden",
          path,
          `Vault does not let the hub ${rights} below ${this.#mount}. Give its policy these rights (docs/settings.md)`,
        )
      : new SecretError(
          "secret_store_unavailable",
          path,
          `Vault at ${this.#url} refused the call with HTTP status ${status}. Look at its log and its quotas`,
        );
  }

  #noMount(path: string): SecretError {
    return new SecretError(
      "secret_store_misconfigured",
      path,
      `Vault at ${this.#url} has nothing mounted at ${this.#mount}. Mount KV version 2 there, or set MUSTER_VAULT_MOUNT`,
    );
  }
}

const noMount = (answer: VaultAnswer): boolean =>
  !answer.ok && answer.errors.some((error) => error.startsWith("no handler for route"));
