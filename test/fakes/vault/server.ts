import { createServer as createHttp, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createHttps } from "node:https";
import { VaultFault } from "./answer.ts";
import { Vault } from "./vault.ts";

const MAX_REQUEST_BYTES = 32 * 1024 * 1024;

export interface VaultServer {
  readonly vault: Vault;
  readonly url: string;
  silent: boolean;
  /** The simulated Vault calls `arriving` with a request's method and path, and answers only when the promise has resolved. */
  arriving: (call: string) => Promise<void>;
  /** Makes the simulated Vault redirect all requests to another Vault server, as a standby server without request forwarding does. */
  redirect(to: string): void;
  close(): Promise<void>;
}

/** Starts a simulation of Vault's HTTP API, which refuses the same requests as a real Vault. */
export async function startVault(
  options: { tls?: { key: string; cert: string }; port?: number; vault?: Vault } = {},
): Promise<VaultServer> {
  const vault = options.vault ?? new Vault();
  const listener: RequestListener = (request, response) => {
    handle(started, request, response).catch((error: unknown) => response.destroy(error as Error));
  };
  const server = options.tls === undefined ? createHttp(listener) : createHttps(options.tls, listener);
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the double of Vault has no port");
  const started: VaultServer & { redirectTo: string | null } = {
    vault,
    url: `${options.tls === undefined ? "http" : "https"}://127.0.0.1:${address.port}`,
    silent: false,
    arriving: async () => undefined,
    redirectTo: null,
    redirect: (to) => {
      started.redirectTo = to;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return started;
}

async function handle(
  server: VaultServer & { readonly redirectTo: string | null },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  if (server.silent) return;
  if (server.redirectTo !== null) {
    response.writeHead(307, { location: `${server.redirectTo}${request.url}` }).end();
    return;
  }
  await server.arriving(`${request.method} ${request.url?.replace("/v1/", "")}`);
  const { status, body } = answerTo(server.vault, request, Buffer.concat(chunks).toString("utf8"));
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(body === null ? undefined : `${JSON.stringify(body)}\n`);
}

function answerTo(vault: Vault, request: IncomingMessage, text: string): { status: number; body: unknown } {
  const url = new URL(request.url ?? "/", "http://vault");
  const header = (name: string): string | undefined => {
    const value = request.headers[name];
    return Array.isArray(value) ? value[0] : value;
  };
  try {
    if (!url.pathname.startsWith("/v1/")) throw new VaultFault(404, []);
    if (Buffer.byteLength(text) > MAX_REQUEST_BYTES) throw new VaultFault(413, ["http: request body too large"]);
    let body: unknown = null;
    try {
      body = text === "" ? null : JSON.parse(text);
    } catch {
      throw new VaultFault(400, ["failed to parse JSON input"]);
    }
    return vault.answer({
      method: request.method ?? "GET",
      path: decodeURIComponent(url.pathname.slice("/v1/".length)),
      query: url.searchParams,
      token: header("x-vault-token"),
      namespace: (header("x-vault-namespace") ?? "").replace(/^\/|\/$/g, ""),
      body,
    });
  } catch (error) {
    if (!(error instanceof VaultFault)) throw error;
    return { status: error.status, body: "request_id" in error.body ? error.body : { errors: error.errors } };
  }
}
