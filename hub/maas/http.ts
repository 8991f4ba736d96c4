import { lookup } from "node:dns";
import type { z } from "zod";
import { apiBase } from "../../shared/region-address.ts";
import { Secret } from "../../shared/secret.ts";
import { refusing } from "../outbound/forbidden-address.ts";
import { type Answer, type Call, httpCall, isSuccess, NoAnswer } from "../outbound/http-request.ts";
import { ArrayElements, BrokenArray } from "./array-elements.ts";
import { errorOf } from "./errors.ts";
import { RequestLimiter } from "./limiter.ts";
import { authorization, parseApiKey } from "./oauth.ts";
import { MaasError } from "./port.ts";

export type FormValue = string | number | boolean | Secret | readonly string[];
export interface MaasRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** The request's path below the base of MAAS's API, with the trailing slash that MAAS requires. */
  readonly path: string;
  readonly op?: string;
  readonly query?: Readonly<Record<string, string | readonly string[]>>;
  readonly form?: Readonly<Record<string, FormValue>>;
  readonly slow?: boolean;
  /**
   * The number of machines that MAAS's answer will contain; each machine makes the request's deadline later, because MAAS needs time for it (maas 6).
   */
  readonly machines?: number;
}

/** The facts that the hub's metrics record after each request to MAAS. The labels of the metrics about requests to MAAS come from closed sets. */
export interface RequestReport {
  readonly operation: string;
  readonly outcome: "ok" | MaasError["code"];
  readonly milliseconds: number;
}

export interface TransportOptions {
  /** The function that resolves host names, by default the system's resolver. */
  readonly resolve?: typeof lookup;
  readonly baseUrl: string;
  readonly apiKey: Secret;
  readonly limiter?: RequestLimiter;
  readonly timeouts?: { readonly quickMs: number; readonly slowMs: number };
  readonly signal?: AbortSignal;
  readonly onRequest?: (report: RequestReport) => void;
}

export interface Transport {
  /** If the body of MAAS's answer does not match the schema, the error is `bad_answer`. */
  json<T>(request: MaasRequest, schema: z.ZodType<T>): Promise<T>;
  text(request: MaasRequest): Promise<string>;
  /**
   * Passes each element of MAAS's array on as it arrives, or `undefined` for an element that is too large. If the body of MAAS's answer is not an
   * array, or is cut off, the error is `bad_answer`. If MAAS's array was cut off, the caller must not conclude anything from elements that did not
   * arrive.
   */
  elements(request: MaasRequest, take: (element: unknown) => void): Promise<void>;
  clockAheadSeconds(request: MaasRequest): Promise<number | null>;
}

const TIMEOUTS = { quickMs: 30_000, slowMs: 600_000 };
/**
 * The additional time that the hub waits for MAAS's answer for each machine of a requested list. MAAS runs queries for each machine before it sends
 * the first byte (maas 6).
 */
const MS_PER_MACHINE = 100;
/** The largest size of one machine in MAAS's answer; even a host with many network cards and disks needs only tens of kilobytes. */
const MAX_ELEMENT_BYTES = 4 * 1024 * 1024;

/**
 * `secondsAhead` ignores a difference of less than two seconds between two clocks. The Date header of MAAS's answer has whole seconds, and the answer
 * needs time to arrive.
 */
function secondsAhead(date: string | null, now: number): number | null {
  const said = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(said)) return null;
  const ahead = Math.round((said - now) / 1000);
  return Math.abs(ahead) < 2 ? 0 : ahead;
}

/**
 * The only function that sends requests to MAAS, with one attempt, a deadline, and a closed set of errors. The MAAS client follows no redirects,
 * because MAAS redirects to plain HTTP (maas 1.1).
 */
export function createTransport(options: TransportOptions): Transport {
  const base = apiBase(options.baseUrl);
  const limiter = options.limiter ?? new RequestLimiter();
  const timeouts = options.timeouts ?? TIMEOUTS;

  const attempt = async (
    request: MaasRequest,
    operation: string,
    take?: (element: unknown) => void,
  ): Promise<Answer> => {
    const key = parseApiKey(options.apiKey);
    if (key === null)
      throw new MaasError({
        code: "unauthorized",
        operation,
        message: "The site's MAAS token is not of the form consumer_key:token_key:token_secret. Write it again.",
      });
    const deadline = AbortSignal.timeout(
      (request.slow ? timeouts.slowMs : timeouts.quickMs) + (request.machines ?? 0) * MS_PER_MACHINE,
    );
    const signal = options.signal === undefined ? deadline : AbortSignal.any([deadline, options.signal]);
    const body = request.form === undefined ? null : encodeForm(request.form);
    const headers = {
      authorization: authorization(key, new Date()).reveal(),
      ...(body === null ? {} : formHeaders(body)),
    };
    const call = { ...placeOf(base, request, options.resolve), method: request.method, headers, body, signal };
    const answer = await (take === undefined ? httpCall(call) : exchangeArray(call, take)).catch((error: unknown) => {
      throw noAnswer(error, { operation, request, base, timedOut: deadline.aborted });
    });
    if (isSuccess(answer.status)) return answer;
    const sent = Object.values(request.form ?? {}).filter((value) => value instanceof Secret);
    const secrets = [options.apiKey, key.tokenSecret, new Secret(key.tokenKey), new Secret(key.consumerKey), ...sent];
    throw errorOf({ ...answer, operation, method: request.method, secrets });
  };

  const send = <T>(
    request: MaasRequest,
    use: (answer: Answer, operation: string) => T,
    take?: (element: unknown) => void,
  ): Promise<T> => {
    const operation = nameOf(request);
    const began = performance.now();
    const report = (outcome: RequestReport["outcome"]): void =>
      options.onRequest?.({ operation, outcome, milliseconds: performance.now() - began });
    return limiter
      .run(request.slow ?? false, options.signal, async () => use(await attempt(request, operation, take), operation))
      .then(
        (used) => {
          report("ok");
          return used;
        },
        (error: unknown) => {
          // The caller cancelled the request to MAAS while the request waited for the limiter.
          const told =
            error instanceof MaasError ? error : noAnswer(error, { operation, request, base, timedOut: false });
          report(told.code);
          throw told;
        },
      );
  };

  return {
    text: (request) => send(request, ({ body }) => body),
    json: (request, schema) =>
      send(request, ({ body }, operation) => parseJson(body, schema, operation, request.method)),
    elements: (request, take) => send(request, () => undefined, take),
    clockAheadSeconds: (request) => send(request, ({ date }) => secondsAhead(date, Date.now())),
  };
}

/**
 * Each request to MAAS carries the site's MAAS token, so the request must not reach a server that is not MAAS. `refusing` refuses a MAAS host name
 * that now resolves to a forbidden address.
 */
const placeOf = (base: URL, request: MaasRequest, resolve = lookup) => ({
  url: urlOf(base, request),
  lookup: refusing(resolve, base),
});

const formHeaders = (body: string) => ({
  "content-type": "application/x-www-form-urlencoded",
  "content-length": String(Buffer.byteLength(body)),
});

async function exchangeArray(call: Call, take: (element: unknown) => void): Promise<Answer> {
  const array = new ArrayElements(take, MAX_ELEMENT_BYTES);
  let begun = false;
  const consume = (part: Buffer): void => {
    begun = true;
    array.push(part);
  };
  const answer = await httpCall({ ...call, consume }).catch((error: unknown) => {
    // If a request to MAAS failed before its deadline and without a cancel, MAAS or the network cut the answer short.
    if (begun && !call.signal.aborted && error instanceof NoAnswer) array.end();
    throw error;
  });
  if (isSuccess(answer.status)) array.end();
  return answer;
}

function parseJson<T>(body: string, schema: z.ZodType<T>, operation: string, method: string): T {
  const bad = (reason: string, cause: unknown): MaasError =>
    new MaasError({
      code: "bad_answer",
      operation,
      message: `MAAS's answer to ${operation} cannot be used: ${reason}`,
      outcomeUnknown: method !== "GET",
      cause,
    });
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    throw bad(`it is not JSON (${body.length} characters)`, error instanceof Error ? new Error(error.name) : error);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const places = parsed.error.issues.slice(0, 3).map((issue) => `${issue.path.join(".")}: ${issue.message}`);
  throw bad(places.join("; "), undefined);
}

interface Unanswered {
  readonly operation: string;
  readonly request: MaasRequest;
  readonly base: URL;
  readonly timedOut: boolean;
}

function noAnswer(error: unknown, { operation, request: { method }, base, timedOut }: Unanswered): MaasError {
  if (error instanceof BrokenArray)
    return new MaasError({
      code: "bad_answer",
      operation,
      message: `MAAS's answer to ${operation} cannot be used: ${error.message}`,
      outcomeUnknown: method !== "GET",
    });
  const [reason, sent] = error instanceof NoAnswer ? [error.reason, error.sent] : ["given up", false];
  const outcomeUnknown = method !== "GET" && sent;
  const outcome = outcomeUnknown ? " Whether it took effect is unknown: read again." : "";
  if (timedOut)
    return new MaasError({
      code: "timeout",
      operation,
      message: `MAAS at ${base.origin} did not answer ${operation} in time.${outcome}`,
      outcomeUnknown,
    });
  return new MaasError({
    code: reason === "too_large" ? "bad_answer" : "unreachable",
    operation,
    message: `MAAS at ${base.origin} cannot be reached for ${operation} (${reason}). Check the site's api_base_url and the network.${outcome}`,
    outcomeUnknown,
  });
}

/** In metrics and errors, the request's name (`POST machines/{id}/?op=deploy`) has `{id}` for numbers and system ids, so that there are few names. */
function nameOf(request: MaasRequest): string {
  const path = request.path.replace(
    /(machines|nodes|blockdevices|interfaces|subnets|vlans|fabrics)\/[^/]+\//g,
    "$1/{id}/",
  );
  return `${request.method} ${path}${request.op === undefined ? "" : `?op=${request.op}`}`;
}

function urlOf(base: URL, request: MaasRequest): URL {
  const url = new URL(request.path, base);
  if (request.op !== undefined) url.searchParams.append("op", request.op);
  for (const [name, value] of Object.entries(request.query ?? {}))
    for (const one of typeof value === "string" ? [value] : value) url.searchParams.append(name, one);
  return url;
}

/** The body of a request to MAAS is always a form, because MAAS's operations ignore a JSON body (maas 1.4). */
function encodeForm(form: Readonly<Record<string, FormValue>>): string {
  const encoded = new URLSearchParams();
  for (const [name, value] of Object.entries(form)) {
    if (Array.isArray(value)) for (const one of value) encoded.append(name, String(one));
    else encoded.append(name, value instanceof Secret ? value.reveal() : String(value));
  }
  return encoded.toString();
}
