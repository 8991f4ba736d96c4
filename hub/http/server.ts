import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { getRequestListener } from "@hono/node-server";
import { ownPlaces } from "../outbound/own-places.ts";
import type { TlsFiles } from "./tls-files.ts";

const LIMITS = { maxHeaderSize: 16_384, headersTimeout: 15_000, requestTimeout: 60_000, keepAliveTimeout: 10_000 };
const HANDSHAKE_WITHIN_MS = 10_000;

/**
 * Serves the admin API, with TLS only if the operator has set certificate files. Limits of time and size for each HTTP request keep a client from
 * blocking the hub.
 */
export async function startAdminServer(
  app: { fetch: (request: Request) => Response | Promise<Response> },
  at: { host: string; port: number; tls?: TlsFiles | null },
): Promise<{ port: number; close(): Promise<void> }> {
  const answer = getRequestListener(app.fetch);
  const { server, following } = serverOf(at.tls ?? null, (request, response) => void answer(request, response));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(at.port, at.host, resolve);
  }).catch(async (error: unknown) => {
    await following?.close();
    throw error;
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the admin server has no port");
  const leave = ownPlaces.add(address.address, address.port);
  return {
    port: address.port,
    close: async () => {
      leave();
      await following?.close();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
        setTimeout(() => server.closeAllConnections(), 2_000).unref();
      });
    },
  };
}

type Listener = ConstructorParameters<typeof Server>[1];

function serverOf(tls: TlsFiles | null, listener: Listener) {
  if (tls === null) return { server: createServer(LIMITS, listener), following: null };
  const server = createTlsServer({ ...LIMITS, ...tls.context(), handshakeTimeout: HANDSHAKE_WITHIN_MS }, listener);
  return { server, following: tls.follow(server) };
}
