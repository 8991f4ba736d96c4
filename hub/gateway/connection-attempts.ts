import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { keepConnectionAttempts, type NotedAttempt } from "../db/queries/connection-attempts.ts";
import type { AttemptKind } from "../db/schema/index.ts";
import type { Db } from "../db/tx.ts";

/** Of one hub between two writes; beyond it new addresses are passed over. */
const MOST_NOTED = 1_000;
const MOST_DETAIL = 80;

/** What clients without a certificate tried on this listener, until it is written: evidence for whoever waits for a host that does not come. */
export class ConnectionAttempts {
  #noted = new Map<string, NotedAttempt>();

  note(attempt: Omit<NotedAttempt, "count" | "tokenSha256"> & Partial<NotedAttempt>): void {
    const { address, kind, tokenSha256 = null, count = 1 } = attempt;
    const key = `${address} ${kind} ${tokenSha256}`;
    const known = this.#noted.get(key);
    if (known === undefined && this.#noted.size >= MOST_NOTED) return;
    const detail = attempt.detail.slice(0, MOST_DETAIL);
    this.#noted.set(key, { address, kind, detail, tokenSha256, count: count + (known?.count ?? 0) });
  }

  /** A connection that the other side ended before its handshake had begun, as TLS would name that. */
  noteCutShort(remoteAddress: string | undefined): void {
    const address = plainAddress(remoteAddress);
    if (address !== null) this.note({ address, kind: "handshake_failed", detail: "ECONNRESET" });
  }

  /** What could not be written stays noted. */
  async flush(db: Db): Promise<void> {
    const noted = [...this.#noted.values()];
    this.#noted = new Map();
    try {
      await keepConnectionAttempts(db, noted);
    } catch (error) {
      for (const attempt of noted) this.note(attempt);
      throw error;
    }
  }

  /** A request that was answered says that its client trusts the hub. Agents with a certificate have sessions, which say more. */
  watchRequest(request: IncomingMessage, response: ServerResponse): void {
    const socket = request.socket as TLSSocket;
    const address = plainAddress(socket.remoteAddress);
    if (address === null || socket.getPeerCertificate().raw !== undefined) return;
    response.once("finish", () => this.note({ address, kind: "asked", detail: String(response.statusCode) }));
  }

  /** Handshakes that fail. A client that does not trust the hub says so by an alert, before it has said who it is. */
  watchHandshakes(server: Server): void {
    const addresses = new WeakMap<object, string>();
    server.on("connection", (socket: Socket) => {
      const address = plainAddress(socket.remoteAddress);
      if (address !== null) addresses.set(socket, address);
    });
    server.on("tlsClientError", (error: Error & { readonly code?: string }, socket: TLSSocket) => {
      // A socket that is closed by now does not know its address any more; the one below it was remembered.
      const below: unknown = Reflect.get(socket, "_parent");
      const address =
        plainAddress(socket.remoteAddress) ??
        (typeof below === "object" && below !== null ? (addresses.get(below) ?? null) : null);
      const code = error.code ?? "unknown";
      if (address !== null) this.note({ address, kind: kindOfFailure(code), detail: code });
    });
  }
}

/** Alerts as OpenSSL names them (RFC 8446, 6.2). A client of OpenSSL calls a certificate that is not valid yet a bad one, and nothing else that a hub's can be. */
function kindOfFailure(code: string): AttemptKind {
  if (/ALERT_(UNKNOWN_CA|DECRYPT_ERROR)$/.test(code)) return "certificate_untrusted";
  if (/ALERT_(BAD_CERTIFICATE|CERTIFICATE_EXPIRED)$/.test(code)) return "certificate_not_valid_now";
  return "handshake_failed";
}

/** An IPv4 address as MAAS writes it, also where the listener's socket is of both families. */
export const plainAddress = (address: string | undefined): string | null =>
  address === undefined ? null : address.replace(/^::ffff:(?=\d+\.)/i, "");
