/**
 * Listens at the given ports of the simulated host's 127.0.0.1, hands each listening socket to `own-linux.ts`, and ends. `own-linux.ts` connects each
 * accepted connection with the port of the same number on this computer.
 */
import { createServer } from "node:net";

for (const port of process.argv.slice(2).map(Number)) {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  await new Promise<void>((resolve, reject) => {
    process.send?.({ port }, server, {}, (error) => (error === null ? resolve() : reject(error)));
  });
  server.close();
}
process.disconnect();
