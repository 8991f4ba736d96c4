import nodeVault from "node-vault";
import { z } from "zod";
import type { Secret } from "../../shared/secret.ts";
import { httpCall, NoAnswer } from "../outbound/http-request.ts";
import { SecretError } from "./port.ts";

export interface VaultAddress {
  /** The URL of Vault with scheme, host and port. */
  readonly url: string;
  readonly namespace: string | null;
  /** The CAs in PEM of which one must have signed Vault's certificate. If `ca` is null, the hub trusts the system's CAs. */
  readonly ca: string | null;
  /** The time limit of one call to Vault, from its connection to the last byte of its answer. */
  readonly deadlineMs: number;
}

/**
 * The hub only compares Vault's `errors` with known texts. Vault's error texts may quote what the hub sent, so no message of the hub contains Vault's
 * error texts.
 */
export type VaultAnswer =
  | { readonly ok: true; readonly body: unknown }
  | { readonly ok: false; readonly status: number; readonly errors: readonly string[]; readonly body: unknown };

export interface VaultRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** The path of the call to Vault below `/v1/`. `createVaultApi` encodes each segment of the path of a call. */
  readonly path: string;
  /** The Vault token of the call; null for a login, because the hub has no token before the login. */
  readonly token: Secret | null;
  readonly body?: unknown;
}
export type VaultApi = (request: VaultRequest) => Promise<VaultAnswer>;

const Refused = z.object({ response: z.object({ statusCode: z.number(), body: z.unknown().optional() }) });
const Errors = z.object({ errors: z.array(z.string()) });
const isRedirect = (status: number): boolean => status >= 300 && status < 400;
/** The error names of OpenSSL and Node.js for a certificate that is not trusted, and for a connection that is not TLS. */
const TLS_FAULT =
  /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|EPROTO)/;

/**
 * Makes calls to Vault through the library node-vault, each with one attempt, a deadline, and a closed set of errors. A call throws if Vault is
 * unreachable, sealed or not trusted, and returns any other answer. By default node-vault takes settings from the environment, and logs requests when
 * DEBUG is set. The hub sets all settings of node-vault explicitly, so that node-vault reads no environment variable and logs no request. The hub's
 * own transport replaces node-vault's transport, which would follow redirects with the Vault token.
 */
export function createVaultApi(address: VaultAddress): VaultApi {
  const client = nodeVault({
    endpoint: address.url,
    "request-promise": { defaults: () => (options: unknown) => transport(address, options) },
    debug: () => undefined,
  });
  Object.assign(client, { token: "", pathPrefix: "", namespace: address.namespace ?? "" });
  return async ({ method, path, token, body }) => {
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    const options = { headers: token === null ? {} : { "X-Vault-Token": token.reveal() } };
    try {
      switch (method) {
        case "GET":
          return { ok: true, body: await client.read(encoded, options) };
        case "POST":
          return { ok: true, body: await client.write(encoded, body ?? {}, options) };
        case "DELETE":
          return { ok: true, body: await client.delete(encoded, options) };
      }
    } catch (error) {
      if (error instanceof NoAnswer) throw noAnswer(error, address, path);
      const refused = Refused.safeParse(error);
      // An error of node-vault that contains no answer of Vault may contain the hub's request with its secrets, so the hub drops the error.
      if (!refused.success)
        throw new SecretError("secret_store_unavailable", path, "The call to Vault could not be made");
      return refusal(refused.data.response.statusCode, refused.data.response.body, address, path);
    }
  };
}

function refusal(status: number, body: unknown, { url }: VaultAddress, path: string): VaultAnswer {
  const parsed = Errors.safeParse(body);
  const errors = parsed.success ? parsed.data.errors : [];
  if (status === 503 && errors.some((error) => /sealed|not initialized/i.test(error)))
    throw new SecretError(
      "secret_store_sealed",
      path,
      `Vault at ${url} is sealed. Unseal it; the hub then continues by itself`,
    );
  if (isRedirect(status))
    throw new SecretError(
      "secret_store_misconfigured",
      path,
      `Vault at ${url} redirects to another address, and the hub sends no token there. Set VAULT_ADDR to the active node or to a load balancer, with https where Vault speaks TLS`,
    );
  if (status >= 500 || status === 429 || status === 408)
    throw new SecretError(
      "secret_store_unavailable",
      path,
      `Vault at ${url} failed with HTTP status ${status}. Read its log; the hub continues by itself when Vault answers`,
    );
  return { ok: false, status, errors, body };
}

class Late extends NoAnswer {}

function noAnswer(error: NoAnswer, { url, deadlineMs }: VaultAddress, path: string): SecretError {
  if (error instanceof Late)
    return new SecretError(
      "secret_store_timeout",
      path,
      `Vault at ${url} did not answer within ${deadlineMs / 1000} s. Check its load and the network`,
    );
  if (TLS_FAULT.test(error.reason))
    return new SecretError(
      "secret_store_untrusted",
      path,
      `Vault at ${url} cannot be trusted (${error.reason}). Set VAULT_CACERT to the CA that signed its certificate, and VAULT_ADDR to a name in it`,
    );
  return new SecretError(
    "secret_store_unavailable",
    path,
    `Vault at ${url} cannot be reached (${error.reason}). Check VAULT_ADDR, the network and whether Vault runs`,
  );
}

const Options = z.object({
  method: z.string(),
  uri: z.string(),
  headers: z.record(z.string(), z.string()),
  json: z.unknown().optional(),
});

/** Replaces node-vault's transport by the hub's HTTP client, which follows no redirects and uses no proxies or global state. */
async function transport({ ca, deadlineMs }: VaultAddress, given: unknown): Promise<unknown> {
  const { method, uri, headers, json } = Options.parse(given);
  const body = json === undefined ? null : JSON.stringify(json);
  const sized =
    body === null ? {} : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) };
  const deadline = AbortSignal.timeout(deadlineMs);
  const answer = await httpCall({
    url: new URL(uri),
    method,
    headers: { ...headers, ...sized, "X-Vault-Request": "true" },
    body,
    signal: deadline,
    ca: ca ?? undefined,
  }).catch((error: unknown) => {
    if (error instanceof NoAnswer && deadline.aborted) throw new Late(error.reason, error.sent);
    throw error;
  });
  // The hub gives node-vault an empty request path with Vault's answer, because node-vault treats every answer whose path contains `sys/health` as a
  // success.
  return { statusCode: answer.status, body: parseJson(answer.body, answer.status), request: { path: "" } };
}

function parseJson(text: string, status: number): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    // A proxy in front of Vault may refuse a request with a text that is not JSON. The hub judges an error answer of Vault that is not JSON by its
    // HTTP status alone. The hub drops the JSON parser's error message, because the parser's message quotes the server's answer.
    if (status !== 200) return null;
    throw new NoAnswer("its answer is not JSON", true);
  }
}
