/** A TCP load balancer for several hubs. The load balancer checks each hub's /readyz, and cuts the connections to a hub that is not ready. */
import { connect, createServer, type Socket } from "node:net";

export interface Backend {
  readonly port: number;
  readonly readyUrl: string;
}
export interface TcpFront {
  close(): Promise<void>;
}

const CHECK_EVERY_MS = 300;
const CHECK_WITHIN_MS = 1_000;

export async function startTcpFront(port: number, backends: readonly Backend[]): Promise<TcpFront> {
  const ready = new Set<Backend>(backends);
  const open = new Map<Socket, Backend>();
  let next = 0;
  const server = createServer((client) => {
    client.on("error", () => client.destroy());
    hand(client, backends.length);
  });
  const hand = (client: Socket, tries: number): void => {
    const candidates = backends.filter((backend) => ready.has(backend));
    const backend = candidates[next++ % Math.max(1, candidates.length)];
    if (backend === undefined || tries === 0) return void client.destroy();
    const upstream = connect(backend.port, "127.0.0.1");
    const refused = (): void => hand(client, tries - 1);
    upstream.once("error", refused);
    upstream.once("connect", () => {
      upstream.off("error", refused).on("error", () => client.destroy());
      open.set(client, backend);
      client.pipe(upstream).pipe(client);
      client.once("close", () => {
        open.delete(client);
        upstream.destroy();
      });
      upstream.once("close", () => client.destroy());
      if (client.destroyed) upstream.destroy();
    });
  };
  const check = async (backend: Backend): Promise<void> => {
    const answer = await fetch(backend.readyUrl, { signal: AbortSignal.timeout(CHECK_WITHIN_MS) }).catch(() => null);
    await answer?.text().catch(() => undefined);
    if (answer?.ok === true) return void ready.add(backend);
    ready.delete(backend);
    for (const [client, to] of open) if (to === backend) client.destroy();
  };
  const timer = setInterval(() => backends.forEach((backend) => void check(backend)), CHECK_EVERY_MS);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    close: async () => {
      clearInterval(timer);
      for (const client of open.keys()) client.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
