import { dataReply, noHandler, permissionDenied, unsupported, VaultFault, type VaultReply } from "./answer.ts";
import { VaultClock } from "./clock.ts";
import { KvMount } from "./kv.ts";
import { type Capability, VaultTokens } from "./tokens.ts";

export interface VaultCall {
  readonly method: string;
  /** Without `/v1/`, decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly token: string | undefined;
  readonly namespace: string;
  readonly body: unknown;
}

const SEALED = new VaultFault(503, ["Vault is sealed"]);

/** Vault's state machine without its transport: seals, namespaces, mounts, and what each path of the API does. */
export class Vault {
  readonly clock = new VaultClock();
  readonly tokens = new VaultTokens(this.clock);
  readonly #mounts = new Map<string, KvMount | "kv1">();
  readonly #namespaces = new Set([""]);
  #sealed = false;
  /** While set, every call is answered so, as a proxy before Vault would. */
  failing: VaultFault | null = null;
  /** Every call with its path, to count and to compare; never its body. */
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
    const made = new KvMount(this.clock);
    this.#mounts.set(`${namespace}|${path}`, made);
    return made;
  }
  mountVersion1(path: string): void {
    this.#mounts.set(`|${path}`, "kv1");
  }

  /** Throws VaultFault for what Vault refuses. */
  answer(call: VaultCall): VaultReply {
    this.calls.push(`${call.method} ${call.path}`);
    if (this.failing !== null) throw this.failing;
    if (call.path === "sys/health" || call.path === "sys/seal-status") return this.#state(call);
    if (this.#sealed) throw SEALED;
    // Vault tells nobody which namespaces there are.
    if (!this.#namespaces.has(call.namespace)) throw permissionDenied();
    if (call.path === "auth/approle/login") return this.#login(call);
    if (call.path.startsWith("auth/token/")) return this.#ownToken(call);
    if (call.path.startsWith("sys/internal/ui/mounts/")) return this.#mountOf(call);
    return this.#kv(call);
  }

  #state({ method, path }: VaultCall): VaultReply {
    if (method !== "GET") throw unsupported();
    const body = { initialized: true, sealed: this.#sealed, standby: false, version: "1.18.3" };
    return { status: path === "sys/health" && this.#sealed ? 503 : 200, body };
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

  #mountOf({ method, path, token, namespace }: VaultCall): VaultReply {
    if (method !== "GET") throw unsupported();
    const name = path.slice("sys/internal/ui/mounts/".length);
    const mounted = this.#mounts.get(`${namespace}|${name}`);
    if (!this.tokens.knowsMount(token, namespace, name) || mounted === undefined)
      throw new VaultFault(403, [
        `preflight capability check returned 403, please ensure client's policies grant access to path "${name}/"`,
      ]);
    return dataReply({
      accessor: "kv_1",
      options: { version: mounted === "kv1" ? "1" : "2" },
      path: `${name}/`,
      type: "kv",
    });
  }

  #kv({ method, path, query, token, namespace, body }: VaultCall): VaultReply {
    const found = [...this.#mounts].find(([key]) => `${namespace}|${path}`.startsWith(`${key}/`));
    if (found === undefined) {
      this.tokens.demand(token, namespace, path, capabilityOf(method, false));
      throw noHandler(path);
    }
    const [key, mount] = found;
    const [kind, ...rest] = path.slice(key.slice(key.indexOf("|") + 1).length + 1).split("/");
    const name = rest.join("/");
    if (mount === "kv1") throw new VaultFault(404, []);
    this.tokens.demand(token, namespace, path, capabilityOf(method, mount.has(name)));
    if (name === "" || name.endsWith("/")) throw unsupported();
    if (kind === "data") {
      if (method === "GET") return mount.read(name, query);
      if (method === "POST" || method === "PUT") return mount.write(name, body);
      if (method === "DELETE") return mount.deleteNewest(name);
    }
    if (kind === "metadata") {
      if (method === "GET") return mount.readMetadata(name);
      if (method === "DELETE") return mount.deleteMetadata(name);
    }
    throw kind === "data" || kind === "metadata" ? unsupported() : new VaultFault(404, []);
  }
}

function capabilityOf(method: string, exists: boolean): Capability {
  if (method === "GET") return "read";
  if (method === "DELETE") return "delete";
  if (method === "LIST") return "list";
  return exists ? "update" : "create";
}
