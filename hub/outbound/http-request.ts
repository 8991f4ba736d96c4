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
  /** The CAs in PEM that the hub trusts in place of the system's CAs. */
  readonly ca?: string | undefined;
  /** If `anyCertificate` is true, the connection is encrypted, but the hub accepts any certificate of the other side. */
  readonly anyCertificate?: true;
  /** The largest size in bytes of an HTTP answer's body. */
  readonly maxBytes?: number;
  /** The function that resolves the host name of the URL. If `lookup` is given, `httpCall` also refuses a URL with a forbidden address. */
  readonly lookup?: LookupFunction;
  /**
   * A function that gets the parts of a successful answer's body as they arrive; an answer of `httpCall` with `consume` has an empty body. `httpCall`
   * rethrows the errors that `consume` throws.
   */
  readonly consume?: (part: Buffer) => void;
}

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly date: string | null;
  readonly body: string;
}

/** The error of a request to which the other side sent no answer or an incomplete answer. */
export class NoAnswer extends Error {
  /** The reason why no complete answer arrived: an error code of the operating system or of TLS, or `too_large`. */
  readonly reason: string;
  /** False if no byte of the request can have reached the other side, so that the request had no effect. */
  readonly sent: boolean;
  constructor(reason: string, sent: boolean) {
    super(`no answer (${reason})`);
    this.name = "NoAnswer";
    this.reason = reason;
    this.sent = sent;
  }
}

/** An error whose cause is the value that `consume` threw. */
class Refused extends Error {}

/**
 * The largest size in bytes of an answer's body, because a longer text does not fit into a JavaScript string. A body that `consume` takes in parts
 * has no size limit.
 */
const MAX_ANSWER_BYTES = 400 * 1024 * 1024;

/**
 * Sends one HTTP request on a connection of its own. On a reused connection, a close by the other side would look like a failed request. `httpCall`
 * does not use `fetch`, because `fetch` gives up after 300 s without headers, and a power call to MAAS may take longer (maas 2.13). `httpCall`
 * follows no redirects. `httpCall` throws NoAnswer, or the error that `consume` throws.
 */
export function httpCall(call: Call): Promise<Answer> {
  const secure = call.url.protocol === "https:";
  // Node.js does not call `lookup` for an IP address, so `httpCall` checks the URL's own IP address.
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
