/** PostgreSQL ends connections at the moment at which they are established, before a user of the connection listens for errors. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../hub/db/client.ts";
import { sql } from "../../hub/db/orm.ts";
import { quietLog } from "../support/log.ts";
import { until } from "../support/until.ts";

/** A message of PostgreSQL's protocol: the type, the length and the content. */
function message(type: string, content: Buffer | string): Buffer {
  const body = Buffer.from(content);
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
const READY = message("Z", "I");
const LOGIN = Buffer.concat([message("R", Buffer.alloc(4)), READY]);
const END = message("E", "SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0");
/** The answer `on` to `show transaction_read_only`: one column of the type text, and one row. */
const READ_ONLY = Buffer.concat([
  // After its name, a column has the numbers of its table, its place, its type (text), its length and its form.
  message(
    "T",
    Buffer.concat([
      Buffer.from("\0\u0001transaction_read_only\0"),
      Buffer.from("000000000000" + "00000019" + "ffff" + "ffffffff" + "0000", "hex"),
    ]),
  ),
  message("D", "\0\u0001\0\0\0\u0002on"),
  message("C", "SHOW\0"),
  READY,
]);

const uncaught: unknown[] = [];
const onUncaught = (error: unknown) => void uncaught.push(error);

describe("a server that speaks just enough of PostgreSQL's protocol", () => {
  /** What the server does after the startup message of a connection. */
  let accept: (socket: Socket) => void;
  let server: Server;
  let port: number;
  let database: Database;
  const open = new Set<Socket>();
  beforeAll(async () => {
    process.on("uncaughtExceptionMonitor", onUncaught);
    server = createServer((socket) => {
      open.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => open.delete(socket));
      socket.once("data", () => accept(socket));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    ({ port } = server.address() as AddressInfo);
  });
  beforeEach(() => void uncaught.splice(0));
  afterEach(async () => {
    await database.close();
    for (const socket of open) socket.destroy();
  });
  afterAll(() => {
    process.off("uncaughtExceptionMonitor", onUncaught);
    server?.close();
  });

  const openOn = (hosts: number): void => {
    const places = Array.from({ length: hosts }, () => `127.0.0.1:${port}`).join();
    const url = `postgres://muster@${places}/muster`;
    database = openDatabase({ url, poolSize: 2, applicationName: "lost", log: quietLog });
  };
  const expectRefused = async (): Promise<void> => {
    for (let tries = 0; tries < 3; tries += 1) {
      await expect(database.db.execute(sql`select 1`)).rejects.toThrow();
      await expect(database.inTx((tx) => tx.execute(sql`select 1`))).rejects.toMatchObject({
        code: "database_unavailable",
      });
    }
    expect(uncaught).toEqual([]);
  };

  it("and ends a session with the packet that accepts the login: statements fail, and the hub goes on", async () => {
    accept = (socket) => socket.end(Buffer.concat([LOGIN, END]));
    openOn(1);
    await expectRefused();
  });

  it("and breaks the connection while the hub asks whether it takes writes: statements fail, and the hub goes on", async () => {
    accept = (socket) => {
      socket.write(LOGIN);
      socket.once("data", () => socket.destroy());
    };
    openOn(2);
    await expectRefused();
  });

  it("and takes no writes: the hub keeps no connection to it open", async () => {
    accept = (socket) => {
      socket.write(LOGIN);
      socket.on("data", (bytes) => (String(bytes).startsWith("X") ? socket.end() : socket.write(READ_ONLY)));
    };
    openOn(2);
    for (let tries = 0; tries < 3; tries += 1)
      await expect(database.db.execute(sql`select 1`)).rejects.toMatchObject({ cause: { code: "25006" } });
    await until("the refused connections to end", () => (open.size === 0 ? true : undefined), { timeoutMs: 15_000 });
  });
});
