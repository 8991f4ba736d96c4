import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { keepConnectionAttempts, type NotedAttempt } from "../db/queries/connection-attempts.ts";
import type { AttemptKind } from "../db/schema/index.ts";
import type { Db } from "../db/tx.ts";
import { agentHandshakes } from "../metrics/counted/agents.ts";
import { plainAddress } from "../outbound/addresses.ts";

/**
 * The largest number of different connection attempts, by address, kind and token, that a hub keeps in memory until its next write to the database.
 * Above MOST_NOTED, the hub only counts repetitions of noted connection attempts until the next write to the database.
 */
const MOST_NOTED = 1_000;
const MOST_DETAIL = 80;

/**
 * Keeps the connection attempts of clients without a certificate until the hub writes these attempts to the database. If the host of an onboarding
 * does not connect, the noted connection attempts show what the host tried.
 */
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

  /** Notes a connection that the client ended before its TLS handshake began, with the error code ECONNRESET of a reset connection. */
  noteCutShort(remoteAddress: string | undefined): void {
    agentHandshakes.add({ outcome: "handshake_failed" });
    const address = plainAddress(remoteAddress);
    if (address !== null) this.note({ address, kind: "handshake_failed", detail: "ECONNRESET" });
  }

  /** If the write to the database fails, the connection attempts stay noted in memory. */
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

  /**
   * Notes each request that the hub has answered as a connection attempt, because an answered request proves that its client trusts the hub. The hub
   * notes no connection attempts of agents that send a certificate, because it records the sessions of these agents anyway.
   */
  watchRequest(request: IncomingMessage, response: ServerResponse): void {
    const socket = request.socket as TLSSocket;
    const address = plainAddress(socket.remoteAddress);
    if (address === null || socket.getPeerCertificate().raw !== undefined) return;
    response.once("finish", () => this.note({ address, kind: "asked", detail: String(response.statusCode) }));
  }

  /**
   * Notes each TLS handshake that fails, with the address of its client. A client that does not trust the hub sends an alert before it has identified
   * itself.
   */
  watchHandshakes(server: Server): void {
    const addresses = new WeakMap<object, string>();
    server.on("connection", (socket: Socket) => {
      const address = plainAddress(socket.remoteAddress);
      if (address !== null) addresses.set(socket, address);
    });
    server.on("secureConnection", () => agentHandshakes.add({ outcome: "completed" }));
    server.on("tlsClientError", (error: Error & { readonly code?: string }, socket: TLSSocket) => {
      // A closed TLS socket no longer knows its client's address, so the hub stored the address with the TCP socket when the connection began.
      const below: unknown = Reflect.get(socket, "_parent");
      const address =
        plainAddress(socket.remoteAddress) ??
        (typeof below === "object" && below !== null ? (addresses.get(below) ?? null) : null);
      const code = error.code ?? "unknown";
      const kind = kindOfFailure(code);
      agentHandshakes.add({ outcome: kind });
      if (address !== null) this.note({ address, kind, detail: code });
    });
  }
}

/**
 * Returns the kind of a failed TLS handshake, by OpenSSL's name of the TLS alert (RFC 8446, 6.2). OpenSSL clients report a certificate that is not
 * valid yet as a bad certificate. The hub takes a client's TLS alert about a bad certificate as a sign that the hub's certificate is not valid yet by
 * the host's clock.
 */
function kindOfFailure(
  code: string,
): Extract<AttemptKind, "certificate_untrusted" | "certificate_not_valid_now" | "handshake_failed"> {
  if (/ALERT_(UNKNOWN_CA|DECRYPT_ERROR)$/.test(code)) return "certificate_untrusted";
  if (/ALERT_(BAD_CERTIFICATE|CERTIFICATE_EXPIRED)$/.test(code)) return "certificate_not_valid_now";
  return "handshake_failed";
}
