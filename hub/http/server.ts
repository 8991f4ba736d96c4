import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";

/** Serves the admin API; limits keep a slow or huge request from holding the hub. */
export async function startAdminServer(
  app: { fetch: (request: Request) => Response | Promise<Response> },
  at: { host: string; port: number },
): Promise<{ port: number; close(): Promise<void> }> {
  const listener = getRequestListener(app.fetch);
  const server = createServer(
    { maxHeaderSize: 16_384, headersTimeout: 15_000, requestTimeout: 60_000, keepAliveTimeout: 10_000 },
    (request, response) => void listener(request, response),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(at.port, at.host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the admin server has no port");
  return {
    port: address.port,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
        setTimeout(() => server.closeAllConnections(), 2_000).unref();
      }),
  };
}
