import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../test/support/until.ts";
import { HandshakeQueue, isWhole } from "./handshake-queue.ts";

/** A TLS record with five bytes of content. */
const RECORD = Buffer.from([22, 3, 1, 0, 5, 1, 2, 3, 4, 5]);
const opened: Socket[] = [];
const servers: Server[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});

async function listening(withinMs = 60_000) {
  const begun: { address: string; first: string }[] = [];
  const cut: (string | undefined)[] = [];
  const begin = (socket: Socket): void => {
    const first = (socket.read() as Buffer).toString("hex");
    begun.push({ address: socket.remoteAddress ?? "", first });
  };
  const queue = new HandshakeQueue(
    { begin, cutShort: (address) => cut.push(address), withinMs },
    { everyMs: 5, perAddress: 2, inAll: 3 },
  );
  const server = createServer((socket) => queue.opened(socket));
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const come = (localAddress = "127.0.0.1"): Socket => {
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    socket.on("error", () => undefined);
    opened.push(socket);
    return socket;
  };
  return { queue, begun, cut, come };
}

describe("the first TLS record", () => {
  it.each([
    ["nothing", Buffer.alloc(0), false],
    ["half of its head", RECORD.subarray(0, 3), false],
    ["all but its last byte", RECORD.subarray(0, 9), false],
    ["the whole of it", RECORD, true],
    ["more than it", Buffer.concat([RECORD, RECORD]), true],
    ["no TLS at all", Buffer.from("GET /"), true],
    ["a record that is too large", Buffer.from([22, 3, 1, 255, 255]), true],
  ])("is complete or not: %s", (_what, bytes, whole) => expect(isWhole(bytes)).toBe(whole));
});

describe("handshakes that arrive at once", () => {
  it("wait behind others of their address and not behind those of another address, and each begins with all its bytes", async () => {
    const { queue, begun, come } = await listening();
    for (let n = 0; n < 400; n += 1) come().write(RECORD);
    await until("some are begun", () => (begun.length > 0 ? true : undefined), { everyMs: 1 });
    come("127.0.0.2").write(RECORD);
    await until("the other address has its turn", () =>
      begun.some(({ address }) => address === "127.0.0.2") ? true : undefined,
    );
    const place = begun.findIndex(({ address }) => address === "127.0.0.2");
    expect(place).toBeLessThan(300);
    await until("all have had theirs", () => (begun.length === 401 ? true : undefined));
    expect(new Set(begun.map(({ first }) => first))).toEqual(new Set([RECORD.toString("hex")]));
    expect(queue.size).toBe(0);
  });

  it("are not delayed by connections that are silent, incomplete or ended", async () => {
    const { queue, begun, cut, come } = await listening();
    for (let n = 0; n < 20; n += 1) come();
    const half = come();
    half.write(RECORD.subarray(0, 7));
    const over = come();
    over.end(RECORD.subarray(0, 7));
    come().write(RECORD);
    await until("the one that speaks is begun", () => (begun.length === 1 ? true : undefined));
    await until("the one that ended is told", () => (cut.length === 1 ? true : undefined));
    expect(cut).toEqual(["127.0.0.1"]);
    half.write(RECORD.subarray(7));
    await until("the other half has come", () => (begun.length === 2 ? true : undefined));
    queue.close();
    await until("the silent ones are gone with the queue", () => (queue.size === 0 ? true : undefined));
  });

  it("are ended if they never begin", async () => {
    const { queue, come } = await listening(50);
    const silent = come();
    await until("it is ended", () => (silent.closed ? true : undefined));
    expect(queue.size).toBe(0);
  });
});
