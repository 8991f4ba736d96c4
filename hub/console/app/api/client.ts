import createClient from "openapi-fetch";
import { errorOf, noAnswer } from "./hub-error.ts";
import type { paths } from "./schema.ts";
import { noteServerTime } from "./server-clock.ts";

const DEADLINE_MS = 30_000;

/** Sends one request of the console, with a deadline. Every request without an answer fails with the same error. */
export async function send(request: Request): Promise<Response> {
  const sentAt = Date.now();
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  try {
    const answer = await fetch(request, { signal: AbortSignal.any([request.signal, deadline]) });
    noteServerTime(answer.headers.get("date"), sentAt, Date.now());
    return answer;
  } catch (error) {
    if (request.signal.aborted) throw error;
    throw noAnswer();
  }
}

/**
 * The typed client of the hub's API. The browser adds the session's cookie by itself. The hub takes a change by a session only with the content type
 * JSON, also if the request has no body (docs/sign-in.md).
 */
export const api = createClient<paths>({ baseUrl: globalThis.location?.origin ?? "", fetch: send });
api.use({
  onRequest({ request }) {
    if (request.method !== "GET") request.headers.set("content-type", "application/json");
    return request;
  },
});

/** Returns the content of the hub's answer, or throws a `HubError` with the hub's own words. */
export async function read<Data>(
  asked: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<NonNullable<Data>> {
  const { data, error, response } = await asked;
  if (!response.ok) throw errorOf(response.status, error);
  if (data === undefined || data === null) {
    if (response.status === 204) return undefined as never;
    throw errorOf(response.status, null);
  }
  return data;
}

/** Returns the header If-Match with the version in an answer, so that the hub refuses a change if somebody else has changed the object since. */
export const ifUnchanged = ({ response }: { response: Response }): { "If-Match": string } => ({
  "If-Match": response.headers.get("etag") ?? "",
});

/** Sends a request that is no part of the API: the sign-in and the sign-out, whose answers have no body or JSON. */
export async function post(path: string, body: unknown): Promise<void> {
  const headers = { "content-type": "application/json" };
  const request = new Request(new URL(path, location.origin), { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await send(request);
  if (!answer.ok) throw errorOf(answer.status, await answer.json().catch(() => null));
}

/** A header for a change that the hub must not repeat if the request is sent twice. */
export const onceOnly = (): { "Idempotency-Key": string } => ({ "Idempotency-Key": crypto.randomUUID() });
