/**
 * A proxy before PostgreSQL that breaks connections at a COMMIT or at another statement. The fault `lost_before` breaks the connection before
 * PostgreSQL gets the statement. The fault `lost_after` breaks the connection after PostgreSQL has executed the statement and before the client gets
 * the answer.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** With the fault `stalled`, the proxy keeps the connection open but forwards nothing more, like a firewall that has forgotten the connection. */
export type Fate = "pass" | "lost_before" | "lost_after" | "stalled";
type Fault = Exclude<Fate, "pass">;
export type Moment = "commit" | "statement";

export interface PostgresProxy {
  readonly url: string;
  readonly met: Readonly<Record<Moment, Record<Fault, number>>>;
  /** The proxy asks `decide` at each COMMIT, and at the end of each other SQL statement, what to do with the statement. */
  decide: (moment: Moment) => Fate;
  /** While `silent` is true, connections open and stay open, but no byte passes, as after a power loss of the server. */
  silent: boolean;
  cutAll(): void;
  close(): Promise<void>;
}

const QUERY = "Q".charCodeAt(0);
const SYNC = "S".charCodeAt(0);

export async function startPostgresProxy(databaseUrl: string): Promise<PostgresProxy> {
  const target = new URL(databaseUrl);
  const open = new Set<Socket>();
  const none = { lost_before: 0, lost_after: 0, stalled: 0 };
  const met = { commit: { ...none }, statement: { ...none } };
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    let answersLost = false;
    let stalled = false;
    const cut = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("error", cut);
      socket.on("close", () => {
        open.delete(socket);
        cut();
      });
    }
    const messages = new Messages();
    client.on("data", (chunk: Buffer) => {
      if (proxy.silent) return;
      for (const message of messages.take(chunk)) {
        if (stalled) return;
        const moment = momentOf(message);
        const fate = moment === null || answersLost ? "pass" : proxy.decide(moment);
        if (moment !== null && fate !== "pass") met[moment][fate] += 1;
        if (fate === "lost_before") return cut();
        if (fate === "stalled") {
          stalled = true;
          return;
        }
        if (fate === "lost_after") answersLost = true;
        upstream.write(message);
      }
    });
    // PostgreSQL answers after an SQL statement has taken effect, so the proxy cuts the connection at the first byte of the answer.
    upstream.on("data", (chunk: Buffer) => {
      if (proxy.silent) return;
      if (answersLost) cut();
      else client.write(chunk);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cutAll = (): void => {
    for (const socket of open) socket.destroy();
  };
  const proxy: PostgresProxy = {
    url: url.href,
    met,
    decide: () => "pass",
    silent: false,
    cutAll,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      cutAll();
      await closed;
    },
  };
  return proxy;
}

/**
 * A PostgreSQL client sends COMMIT as a simple query, and ends every other statement with the message Sync. `momentOf` returns null for a message
 * that is not a COMMIT and does not end a statement, for example during the login.
 */
function momentOf(message: Buffer): Moment | null {
  if (message[0] === SYNC) return "statement";
  if (message[0] !== QUERY) return null;
  return message.subarray(5, -1).toString().toLowerCase() === "commit" ? "commit" : null;
}

/**
 * Splits the bytes that a PostgreSQL client sends into messages of PostgreSQL's protocol. Only the first message of a client, the startup message,
 * has no type byte.
 */
class Messages {
  #started = false;
  #rest: Buffer = Buffer.alloc(0);

  *take(chunk: Buffer): Generator<Buffer> {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const typeBytes = this.#started ? 1 : 0;
      if (this.#rest.length < typeBytes + 4) return;
      const length = typeBytes + this.#rest.readInt32BE(typeBytes);
      if (this.#rest.length < length) return;
      const message = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      this.#started = true;
      yield message;
    }
  }
}
