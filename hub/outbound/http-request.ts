import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { LookupFunction } from "node:net";
import { isForbiddenHost } from "./forbidden-address.ts";

export interface Call {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly signal: AbortSignal;
  /** CAs in PEM that are trusted instead of the system's. */
  readonly ca?: string | undefined;
  /** Encrypted, and to whom is not asked. */
  readonly anyCertificate?: true;
  /** The longest body that is taken. */
  readonly maxBytes?: number;
  /** What the host's name stands for. Given, an address that is forbidden is not asked either. */
  readonly lookup?: LookupFunction;
  /** Given the parts of a success's body as they arrive; the answer then has none. What it throws is thrown on. */
  readonly consume?: (part: Buffer) => void;
}

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  /** When the other side says that it answered. */
  readonly date: string | null;
  readonly body: string;
}

/** No answer came, or only a part of one. */
export class NoAnswer extends Error {
  /** A system or TLS error code, or `too_large`. */
  readonly reason: string;
  /** False while not a byte can have reached the other side: then nothing happened there. */
  readonly sent: boolean;
  constructor(reason: string, sent: boolean) {
    super(`no answer (${reason})`);
    this.name = "NoAnswer";
    this.reason = reason;
    this.sent = sent;
  }
}

/** Its cause is what `consume` threw. */
class Refused extends Error {}

/** Beyond this a text does not fit into a string. What is consumed part by part may be as long as it likes. */
const MAX_ANSWER_BYTES = 400 * 1024 * 1024;

/**
 * One request and its answer over a connection of its own, so that a kept connection closed by the other side never looks like a failed
 * call. Not `fetch`: that one gives up after 300 s without headers whatever it is told, and a power call may take longer (maas 2.13).
 * Follows no redirect. Throws NoAnswer, and what `consume` throws.
 */
export function httpCall(call: Call): Promise<Answer> {
  const secure = call.url.protocol === "https:";
  // An address is not looked up.
  if (call.lookup !== undefined && isForbiddenHost(call.url))
    return Promise.reject(new NoAnswer("forbidden_address", false));
  return new Promise((resolve, reject) => {
    let sent = false;
    const fail = (error: unknown): void =>
      reject(error instanceof Refused ? error.cause : new NoAnswer(reasonOf(error), sent));
    const { method, headers, signal, ca, lookup } = call;
    const trusted = { ca, rejectUnauthorized: call.anyCertificate !== true };
    const options = { method, headers, signal, agent: false, lookup, ...trusted };
    const request = (secure ? httpsRequest : httpRequest)(call.url, options, (response) =>
      readBody(response, isSuccess(response.statusCode) ? call : { maxBytes: call.maxBytes }).then(
        (body) =>
          resolve({
            status: response.statusCode ?? 0,
            retryAfter: response.headers["retry-after"] ?? null,
            date: response.headers.date ?? null,
            body,
          }),
        (error: unknown) => {
          request.destroy();
          fail(error);
        },
      ),
    );
    request.on("socket", (socket) => socket.once(secure ? "secureConnect" : "connect", () => (sent = true)));
    request.on("error", fail);
    request.end(call.body ?? "");
  });
}

export const isSuccess = (status: number | undefined): boolean => status !== undefined && status >= 200 && status < 300;

async function readBody(
  response: IncomingMessage,
  {
    consume,
    maxBytes = MAX_ANSWER_BYTES,
  }: { readonly consume?: Call["consume"]; readonly maxBytes?: number | undefined },
): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    if (consume !== undefined) {
      try {
        consume(part);
      } catch (error) {
        throw new Refused("the answer is not taken", { cause: error });
      }
      continue;
    }
    bytes += part.length;
    if (bytes > maxBytes) throw Object.assign(new Error("the answer is too large"), { code: "too_large" });
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

const reasonOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "connection failed";
