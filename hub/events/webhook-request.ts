import { lookup } from "node:dns";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { ForbiddenAddressError, isForbiddenHost, refusing } from "../outbound/forbidden-address.ts";
import { type Attempted, retryAfterSeconds } from "./delivery-policy.ts";

const ANSWER_WITHIN_MS = 15_000;

/** The webhook client reuses its connections for later deliveries, and `close` closes the connections. */
export class WebhookClient {
  readonly #http: HttpAgent;
  readonly #https: HttpsAgent;
  readonly #resolve: typeof lookup;

  /** The argument `resolve` resolves the host names of webhook receivers; the default is the system's resolver. */
  constructor(resolve: typeof lookup = lookup) {
    this.#resolve = resolve;
    this.#http = new HttpAgent({ keepAlive: true });
    this.#https = new HttpsAgent({ keepAlive: true });
  }

  /**
   * If a webhook's receiver answers with a redirect, the hub does not follow the redirect, and treats it like any other answer. To follow a redirect
   * would send the signed event to an address that no operator has entered.
   */
  async post(
    url: string,
    { headers, body }: { headers: Readonly<Record<string, string>>; body: string },
    signal: AbortSignal,
  ): Promise<Attempted> {
    const withinTime = AbortSignal.timeout(ANSWER_WITHIN_MS);
    try {
      const target = new URL(url);
      if (isForbiddenHost(target)) throw new ForbiddenAddressError();
      const answer = await this.#ask(target, body, { headers, signal: AbortSignal.any([withinTime, signal]) });
      const after = retryAfterSeconds(answer.headers["retry-after"], new Date());
      return { answered: true, status: answer.statusCode ?? 0, retryAfterSeconds: after };
    } catch (error) {
      if (withinTime.aborted)
        return { answered: false, reason: `The receiver did not answer within ${ANSWER_WITHIN_MS / 1000} s` };
      return { answered: false, reason: whyNot(error) };
    }
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  #ask(target: URL, body: string, options: RequestOptions): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const [send, agent] =
        target.protocol === "https:" ? [httpsRequest, this.#https] : ([httpRequest, this.#http] as const);
      const headers = { ...options.headers, "content-length": String(Buffer.byteLength(body)) };
      const looked = refusing(this.#resolve, target);
      const asked = send(target, { ...options, headers, method: "POST", agent, lookup: looked });
      // After the webhook client has got the status of the receiver's answer, it ignores errors, for example in an answer that never ends.
      asked.on("error", reject);
      asked.on("response", (answer) => {
        answer.on("error", () => undefined);
        answer.resume();
        resolve(answer);
      });
      asked.end(body);
    });
  }
}

/**
 * Returns the reason why a webhook's request failed, with only the system's error code. The error of a failed webhook request may contain addresses
 * and the sent event in its full text.
 */
function whyNot(error: unknown): string {
  if (error instanceof ForbiddenAddressError)
    return "The receiver's name resolves to a forbidden address, e.g. a link-local one, or to this hub itself. Change the webhook's URL.";
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? ` (${error.code})` : "";
  return `The receiver could not be reached${code}`;
}
