import { createServer } from "node:net";

/**
 * The tests listen on ports below the kernel's port range for outgoing connections. Before a test listens on a free port of the kernel's range, an
 * outgoing connection could take the port.
 */
const [LOWEST_PORT, HIGHEST_PORT] = [10_000, 32_000];

export async function freePort(host = "127.0.0.1"): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = LOWEST_PORT + Math.floor(Math.random() * (HIGHEST_PORT - LOWEST_PORT));
    if (await isFree(port, host)) return port;
  }
  throw new Error(`no port between ${LOWEST_PORT} and ${HIGHEST_PORT} could be bound`);
}

const isFree = (port: number, host: string): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
