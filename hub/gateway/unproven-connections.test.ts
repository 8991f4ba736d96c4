import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { until } from "../../test/support/until.ts";
import { UnprovenConnections } from "./unproven-connections.ts";

const opened: Socket[] = [];
afterEach(() => {
  for (const socket of opened) socket.destroy();
});

async function listening(unproven: UnprovenConnections) {
  const server = createServer();
  const accepted: Socket[] = [];
  server.on("connection", (socket) => {
    accepted.push(socket);
    unproven.opened(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const come = async (localAddress = "127.0.0.1") => {
    const before = accepted.length;
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    socket.on("error", () => undefined);
    opened.push(socket);
    await until("it is accepted", () => (accepted.length > before ? true : undefined), { everyMs: 1 });
    return { client: socket, server: accepted[before] as Socket };
  };
  return { server, come };
}

it("closes the oldest connection of an address, and none that is proven or has another address", async () => {
  const unproven = new UnprovenConnections({ perAddress: 3, inAll: 100 });
  const { server, come } = await listening(unproven);
  const good = await come();
  unproven.proven(good.server);
  const other = await come("127.0.0.2");
  const hostile: { client: Socket; server: Socket }[] = [];
  for (let n = 0; n < 6; n += 1) hostile.push(await come());
  await until("the oldest three are cut", () =>
    hostile.every(({ client }, n) => client.closed === n < 3) ? true : undefined,
  );
  expect([good.client.closed, other.client.closed]).toEqual([false, false]);
  expect([unproven.size, unproven.isProven(good.server), unproven.isProven(other.server)]).toEqual([4, true, false]);
  for (const { client } of hostile) client.destroy();
  await until("they are not counted any more", () => (unproven.size === 1 ? true : undefined));
  server.close();
});

it("closes the oldest connection of all if too many come from many addresses", async () => {
  const unproven = new UnprovenConnections({ perAddress: 3, inAll: 4 });
  const { server, come } = await listening(unproven);
  const come1 = await come("127.0.0.3");
  for (let n = 4; n < 8; n += 1) await come(`127.0.0.${n}`);
  await until("the first is cut", () => (come1.client.closed ? true : undefined));
  expect(unproven.size).toBe(4);
  server.close();
});
