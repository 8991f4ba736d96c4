import { dataReply, noHandler, permissionDenied, unsupported, VaultFault, type VaultReply } from "./answer.ts";
import { VaultClock } from "./clock.ts";
import { KvMount } from "./kv.ts";
import { KvVersion1 } from "./kv-version-1.ts";
import { type Capability, VaultTokens } from "./tokens.ts";

export interface VaultCall {
  readonly method: string;
  /** The decoded path of a request to Vault, without `/v1/`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly token: string | undefined;
  readonly namespace: string;
  readonly body: unknown;
}

const SEALED = new VaultFault(503, ["error performing token check: Vault is sealed"]);

export class Vault {
  readonly clock = new VaultClock();
  readonly tokens = new VaultTokens(this.clock);
  /** The mounts of the simulated Vault, by namespace and path. */
  readonly #mounts = new Map<string, Mount>();
  readonly #namespaces = new Set([""]);
  #sealed = false;
  /** While `failing` is set, the simulated Vault answers every call with the error in `failing`, as a proxy in front of Vault could. */
  failing: VaultFault | null = null;
  /** The method and path of each call of the simulated Vault. The list `calls` contains no request bodies. */
  readonly calls: string[] = [];

  seal(): void {
    this.#sealed = true;
  }
  unseal(): void {
    this.#sealed = false;
  }
  addNamespace(name: string): void {
    this.#namespaces.add(name);
  }
  mount(path: string, namespace = ""): KvMount {
    const kv = new KvMount(this.clock);
    this.#mounts.set(`${namespace}|${path}`, { path, version: "2", kv });
    return kv;
  }
  mountAt(path: string): KvMount {
    const kv = this.#mounts.get(`|${path}`)?.kv;
    if (!(kv instanceof KvMount)) throw new Error(`nothing is mounted at ${path}`);
    return kv;
  }
  mountVersion1(path: string): void {
    this.#mounts.set(`|${path}`, { path, version: "1", kv: new KvVersion1() });
  }

  /** Answers a call of Vault's API; throws VaultFault when Vault refuses the call. */
  answer(call: VaultCall): VaultReply {
    this.calls.push(`${call.method} ${call.path}`);
    if (this.failing !== null) throw this.failing;
    if (this.#sealed) throw SEALED;
    // Vault answers a call in an unknown namespace with 403, because Vault does not reveal which namespaces exist.
    if (!this.#namespaces.has(call.namespace)) throw permissionDenied();
    if (call.path === "auth/approle/login") return this.#login(call);
    if (call.path.startsWith("auth/token/")) return this.#ownToken(call);
    if (call.path.startsWith("sys/internal/ui/mounts/")) return this.#mountOf(call);
    return this.#engine(call);
  }

  #login({ method, namespace, body }: VaultCall): VaultReply {
    if (method !== "POST" && method !== "PUT") throw unsupported();
    return this.tokens.login(namespace, body);
  }

  #ownToken({ method, path, token, namespace }: VaultCall): VaultReply {
    if (path === "auth/token/lookup-self" && method === "GET")
      return this.tokens.lookupSelf(this.tokens.demand(token, namespace, path, "read"));
    if (path === "auth/token/renew-self" && method === "POST")
      return this.tokens.renewSelf(this.tokens.demand(token, namespace, path, "update"));
    if (path === "auth/token/revoke-self" && method === "POST")
      return this.tokens.revokeSelf(this.tokens.demand(token, namespace, path, "update"));
    throw permissionDenied();
  }

  /**
   * Returns the mount of the secrets engine that contains the path of a secret. The path of a mount is the beginning of the secret's path, or the
   * whole path.
   */
  #mountOf({ method, path, token, namespace }: VaultCall): VaultReply {
    if (method !== "GET") throw unsupported();
    const name = `${path.slice("sys/internal/ui/mounts/".length)}/`;
    const mounted = this.#mountAbove(namespace, name);
    if (!this.tokens.knowsMount(token, namespace, mounted?.path ?? name) || mounted === null)
      throw new VaultFault(403, [
        `preflight capability check returned 403, please ensure client's policies grant access to path "${name}"`,
      ]);
    const { version, path: at } = mounted;
    return dataReply({ accessor: "kv_1", options: { version }, path: `${at}/`, type: "kv" });
  }

  #engine({ method, path, query, token, namespace, body }: VaultCall): VaultReply {
    const mounted = this.#mountAbove(namespace, path);
    const below = mounted === null ? "" : path.slice(mounted.path.length + 1);
    this.tokens.demand(token, namespace, path, capabilityOf(method, mounted?.kv.has(below) ?? true));
    if (mounted === null) throw noHandler(path);
    return mounted.kv.answer(method, below, query, body);
  }

  #mountAbove(namespace: string, path: string): Mount | null {
    return [...this.#mounts].find(([key]) => `${namespace}|${path}`.startsWith(`${key}/`))?.[1] ?? null;
  }
}

interface Mount {
  readonly path: string;
  readonly version: "1" | "2";
  readonly kv: KvMount | KvVersion1;
}

function capabilityOf(method: string, exists: boolean): Capability {
  if (method === "GET") return "read";
  if (method === "DELETE") return "delete";
  if (method === "LIST") return "list";
  return exists ? "update" : "create";
}
