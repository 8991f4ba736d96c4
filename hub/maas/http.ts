import type { z } from "zod";
import type { Secret } from "../../shared/secret.ts";
import { apiBase } from "./base-url.ts";
import { errorOf } from "./errors.ts";
import { RequestLimiter } from "./limiter.ts";
import { authorization, parseApiKey } from "./oauth.ts";
import { MaasError } from "./port.ts";

export type FormValue = string | number | boolean | Secret | readonly string[];
export interface MaasRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below the API's base, with the trailing slash that MAAS insists on. */
  readonly path: string;
  readonly op?: string;
  readonly query?: Readonly<Record<string, string | readonly string[]>>;
  readonly form?: Readonly<Record<string, FormValue>>;
  /** The call may wait for a BMC: minutes (contract 2.13). */
  readonly slow?: boolean;
}

/** How one request ended, for metrics: labels from closed sets only. */
export interface RequestReport {
  readonly operation: string;
  readonly outcome: "ok" | MaasError["code"];
  readonly milliseconds: number;
}

export interface TransportOptions {
  readonly baseUrl: string;
  readonly apiKey: Secret;
  readonly limiter?: RequestLimiter;
  readonly timeouts?: { readonly quickMs: number; readonly slowMs: number };
  readonly signal?: AbortSignal;
  readonly onRequest?: (report: RequestReport) => void;
}

export interface Transport {
  /** A body that is not what the schema says is `bad_answer`. */
  json<T>(request: MaasRequest, schema: z.ZodType<T>): Promise<T>;
  text(request: MaasRequest): Promise<string>;
}

const TIMEOUTS = { quickMs: 30_000, slowMs: 600_000 };
/** Failures before a byte was sent: whatever was asked did not happen. */
const NOT_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** The only fetch to MAAS. One attempt, a deadline, and a closed set of errors; never a redirect (contract 1.1: they lead to clear text). */
export function createTransport(options: TransportOptions): Transport {
  const base = apiBase(options.baseUrl);
  const limiter = options.limiter ?? new RequestLimiter();
  const timeouts = options.timeouts ?? TIMEOUTS;

  const attempt = async (request: MaasRequest, operation: string): Promise<string> => {
    const key = parseApiKey(options.apiKey);
    if (key === null)
      throw new MaasError({
        code: "unauthorized",
        operation,
        message: "The site's MAAS token is not of the form consumer_key:token_key:token_secret. Write it again.",
      });
    const deadline = AbortSignal.timeout(request.slow ? timeouts.slowMs : timeouts.quickMs);
    const signal = options.signal === undefined ? deadline : AbortSignal.any([deadline, options.signal]);
    const form = request.form === undefined ? null : encodeForm(request.form);
    try {
      const response = await fetch(urlOf(base, request), {
        method: request.method,
        headers: {
          authorization: authorization(key, new Date()).reveal(),
          ...(form === null ? {} : { "content-type": "application/x-www-form-urlencoded" }),
        },
        ...(form === null ? {} : { body: form }),
        redirect: "manual",
        signal,
      });
      const body = await response.text();
      if (response.ok) return body;
      const headers = response.headers;
      throw errorOf({
        operation,
        method: request.method,
        status: response.status,
        contentType: headers.get("content-type") ?? "",
        retryAfter: headers.get("retry-after"),
        body,
      });
    } catch (error) {
      throw error instanceof MaasError ? error : transportError(error, operation, request.method, deadline.aborted);
    }
  };

  const send = async (request: MaasRequest): Promise<string> => {
    const operation = nameOf(request);
    return limiter.run(request.slow ?? false, options.signal, async () => {
      const began = performance.now();
      const report = (outcome: RequestReport["outcome"]): void =>
        options.onRequest?.({ operation, outcome, milliseconds: performance.now() - began });
      try {
        const body = await attempt(request, operation);
        report("ok");
        return body;
      } catch (error) {
        report(error instanceof MaasError ? error.code : "bad_answer");
        throw error;
      }
    });
  };

  return {
    text: send,
    json: async (request, schema) => parseJson(await send(request), schema, nameOf(request), request.method),
  };
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

function transportError(error: unknown, operation: string, method: string, timedOut: boolean): MaasError {
  if (timedOut)
    return new MaasError({
      code: "timeout",
      operation,
      message: `MAAS did not answer ${operation} in time. Whether it took effect is unknown: read again.`,
      outcomeUnknown: method !== "GET",
    });
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const reason = cause instanceof Error && "code" in cause ? String(cause.code) : "connection failed";
  return new MaasError({
    code: "unreachable",
    operation,
    message: `MAAS cannot be reached for ${operation} (${reason}). Check the site's api_base_url and the network.`,
    outcomeUnknown: method !== "GET" && !NOT_SENT.has(reason),
  });
}

/** e.g. `POST machines/{id}/?op=deploy`: a label from a closed set, so numbers and system ids are blanked. */
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

/** Always a form: with a JSON body MAAS's operations see nothing (contract 1.4). */
function encodeForm(form: Readonly<Record<string, FormValue>>): string {
  const encoded = new URLSearchParams();
  for (const [name, value] of Object.entries(form)) {
    if (Array.isArray(value)) for (const one of value) encoded.append(name, String(one));
    else encoded.append(name, typeof value === "object" && "reveal" in value ? value.reveal() : String(value));
  }
  return encoded.toString();
}
