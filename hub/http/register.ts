import { createHmac } from "node:crypto";
import type { Context, Hono } from "hono";
import { z } from "zod";
import { APPROVAL_HEADER } from "../../shared/api/approvals.ts";
import { ApiError } from "../../shared/api/errors.ts";
import { canonicalJson } from "../../shared/json.ts";
import { noteAsker } from "../db/committed.ts";
import { findIdempotencyKey, keepIdempotencyKey, lockIdempotencyKey } from "../db/queries/api-requests.ts";
import { recordAudit } from "../db/queries/audit-logs.ts";
import { CommitOutcomeUnknownError, type Tx } from "../db/tx.ts";
import type { Actor } from "../people/actor.ts";
import { credentialOf } from "../people/credential.ts";
import { mustBeWithin } from "../people/place.ts";
import { cookieValue } from "../sign-in/session-cookie.ts";
import { PRINTED_PAGE_POLICY } from "../ui/sanitization-page.ts";
import { askSecondPerson, checkSecondPerson, NeedsApproval } from "./approval.ts";
import { type ApiGuard, authorize, type Env } from "./authorize.ts";
import type { ApiDependencies } from "./deps.ts";
import { readJson } from "./json-body.ts";
import { parse } from "./problem.ts";
import { type Call, Produced, type Route, sourceOf, takesIdempotencyKey, Versioned } from "./route.ts";

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,128}$/;
/** Rewrites a path parameter such as `{id}` in the notation of the Hono framework, `:id`. */
const honoPath = (path: string): string => path.replace(/\{(\w+)\}/g, ":$1");

/**
 * The hub handles each request in this order: authentication, right, validation, the check that the client may see the object, replay of a stored
 * answer, the action with its audit, the answer.
 */
export function register(app: Hono<Env>, route: Route, deps: ApiDependencies, guard: ApiGuard): void {
  app.on(route.method, honoPath(route.path), async (c) => {
    const actor = await authorize(c, route, deps, guard);
    const key = route.permission === "write" ? keyOf(c, route) : null;
    const call = await parseCall(c, route, actor, deps);
    await mustBeWithin(deps.db, actor, route, call);
    if (route.stream !== undefined) return answerStream(c, route.stream, call, guard);
    return route.permission === "write" ? answerWrite(c, route, call, key) : answer(c, route, await route.read?.(call));
  });
}

async function parseCall(c: Context<Env>, route: Route, actor: Actor, deps: ApiDependencies): Promise<Call> {
  return {
    params: parse(route.params ?? z.object({}), c.req.param(), "path"),
    query: parse(route.query ?? z.strictObject({}), queryOf(c), "query"),
    body: route.body === undefined ? undefined : parse(route.body, await readBody(c, route), "body"),
    actor,
    address: c.get("address"),
    requestId: c.get("requestId"),
    ifMatch: /^(?:W\/)?"(.*)"$/.exec(c.req.header("if-match") ?? "")?.[1] ?? null,
    accept: c.req.header("accept"),
    deps,
  };
}

const readBody = async (c: Context<Env>, { media }: Route): Promise<unknown> =>
  media === undefined
    ? readJson(c)
    : media.read({
        contentType: c.req.header("content-type") ?? "",
        header: (name) => c.req.header(name),
        text: await c.req.text(),
      });

/**
 * A query parameter that a client gives twice stays a list, which every schema refuses. If the hub used only one value of a repeated query parameter,
 * the hub would answer a question that the client did not ask.
 */
const queryOf = (c: Context<Env>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(c.req.queries()).map(([name, values]) => [name, values.length === 1 ? values[0] : values]),
  );

function answer(c: Context<Env>, route: Route, result: unknown): Response {
  if (result instanceof Produced) return c.body(result.text, 200, { "content-type": result.contentType });
  const body = result instanceof Versioned ? result.body : result;
  if (result instanceof Versioned) c.header("etag", `"${result.etag}"`);
  if (route.status === 204) return c.body(null, 204);
  if (route.produces === "text/html") {
    c.header("content-security-policy", `${PRINTED_PAGE_POLICY}; frame-ancestors 'none'`);
    c.header("x-content-type-options", "nosniff");
    c.header("referrer-policy", "no-referrer");
    return c.html(String(body), route.status);
  }
  if (route.produces !== undefined) {
    c.header("x-content-type-options", "nosniff");
    return c.body(String(body), route.status, { "content-type": `${route.produces}; charset=utf-8` });
  }
  return c.json(body as object, route.status);
}

async function answerStream(
  c: Context<Env>,
  stream: NonNullable<Route["stream"]>,
  call: Call,
  { watch }: ApiGuard,
): Promise<Response> {
  // `x-accel-buffering: no` tells a proxy to pass each event on at once. A proxy that waits for the end of the answer would never pass on a stream.
  const headers = { "content-type": "text/event-stream", "x-accel-buffering": "no" };
  // No code reads the body of an answer to HEAD, so nothing would end a stream that was opened for a HEAD request.
  if (c.req.method === "HEAD") return c.body(null, 200, headers);
  // A browser's EventSource that has seen no event may send an empty Last-Event-ID header.
  const lastEventId = c.req.header("last-event-id") || undefined;
  const given = { authorization: c.req.header("authorization"), cookie: c.req.header("cookie") };
  const credential = credentialOf(given, call.deps.signIn.cookies);
  if (credential === null) throw new Error("a stream was opened without a credential");
  const about = { lastEventId, signal: c.req.raw.signal, holds: watch.holdsOf(credential) };
  return c.body(await stream(call, about), 200, headers);
}

class KeyTaken extends Error {}

async function answerWrite(c: Context<Env>, route: Route, call: Call, key: string | null): Promise<Response> {
  const { deps } = call;
  // The hub stores an HMAC of a request with an Idempotency-Key, keyed with the client's token or session. With a plain hash of the request in the
  // database, a reader of the database could guess a password that the request's body contains.
  const proof =
    c.req.header("authorization") ?? cookieValue(c.req.header("cookie") ?? null, deps.signIn.cookies.session);
  const requestSha256 = createHmac("sha256", proof ?? "")
    .update(canonicalJson([route.method, c.req.path, call.body ?? null]))
    .digest("hex");
  const replayed = key === null ? null : await replay(c, call, key, requestSha256);
  if (replayed !== null) return replayed;
  try {
    return answer(c, route, await carryOut(route, call, c.req.header(APPROVAL_HEADER), { key, requestSha256 }));
  } catch (error) {
    if (!(error instanceof KeyTaken) || key === null) throw error;
    // If two simultaneous requests have one Idempotency-Key, both clients get the answer that the hub stored first.
    const first = await replay(c, call, key, requestSha256);
    if (first === null) throw error;
    return first;
  }
}

/**
 * Carries out the action of a route that writes, records the action in the audit, and asks a second person for an approval if the action needs one.
 * The routes in another system's form of the API also call `carryOut`, so that each action has only one set of rules.
 */
export async function carryOut(
  route: Route,
  call: Call,
  approval: string | undefined,
  kept: { readonly key: string | null; readonly requestSha256: string } = { key: null, requestSha256: "" },
): Promise<unknown> {
  const { deps, actor } = call;
  const { key, requestSha256 } = kept;
  const prepared = await route.before?.(call);
  const act = async (tx: Tx): Promise<unknown> => {
    if (route.write === undefined) throw new Error(`${route.operationId} does not write`);
    if (key !== null && (await lockIdempotencyKey(tx, actor.name, key)) !== null) throw new KeyTaken();
    noteAsker(tx, { name: actor.name, requestId: call.requestId });
    const check = await checkSecondPerson(tx, route, call, approval);
    const { body, audit, touched } = await route.write(call, tx, prepared);
    check.mustBeApproved(touched);
    const approved = check.approvalId === null ? {} : { approval_id: check.approvalId };
    await recordAudit(tx, {
      ...sourceOf(call),
      action: route.operationId,
      target: audit.target,
      reason: audit.reason ?? null,
      details: { ...audit.details, ...approved },
    });
    if (key !== null) await keepAnswer(tx, route, call, { key, requestSha256, body });
    return body;
  };
  try {
    const body = await deps.inTx(act);
    await tidy(route, call, route.after?.(call, prepared));
    return body;
  } catch (error) {
    // If the outcome of a request's commit is unknown, the rows of the request may exist in the database. If a commit has an unknown outcome, the hub
    // keeps the secrets to which the rows of the request may refer.
    if (!(error instanceof CommitOutcomeUnknownError)) await tidy(route, call, route.abandon?.(call, prepared));
    if (error instanceof NeedsApproval) throw await askSecondPerson(route, call, error);
    throw error;
  }
}

async function keepAnswer(
  tx: Tx,
  { status }: Route,
  { actor }: Call,
  { key, requestSha256, body }: { readonly key: string; readonly requestSha256: string; readonly body: unknown },
): Promise<void> {
  const plain = body instanceof Versioned ? body.body : body;
  const kept = { actor: actor.name, key, requestSha256, status, body: plain ?? null };
  if (!(await keepIdempotencyKey(tx, kept))) throw new KeyTaken();
}

/**
 * After a request, removes things outside the database that nothing needs any more, such as a secret. If the removal of an unused secret fails, the
 * client still gets the request's result or error.
 */
async function tidy(route: Route, call: Call, removal: Promise<void> | undefined): Promise<void> {
  await removal?.catch((error: unknown) => {
    call.deps.log.warn("the cleanup after a request failed; something unused stays outside the database", {
      request_id: call.requestId,
      operation: route.operationId,
      error,
    });
  });
}

function keyOf(c: Context<Env>, route: Route): string | null {
  const key = c.req.header("idempotency-key");
  if (route.method !== "POST" || key === undefined) return null;
  if (!takesIdempotencyKey(route))
    throw new ApiError(
      "validation_failed",
      "The answer to this request holds a secret and is not stored, so it cannot be repeated. Send the request without an Idempotency-Key.",
      { errors: [{ pointer: "/headers/idempotency-key", message: "is not taken here" }] },
    );
  if (!IDEMPOTENCY_KEY.test(key))
    throw new ApiError("validation_failed", "The Idempotency-Key must be 1 to 128 visible ASCII characters.", {
      errors: [{ pointer: "/headers/idempotency-key", message: "is not valid" }],
    });
  return key;
}

async function replay(c: Context<Env>, call: Call, key: string, requestSha256: string): Promise<Response | null> {
  const known = await findIdempotencyKey(call.deps.db, call.actor.name, key);
  if (known === null) return null;
  if (known.requestSha256 !== requestSha256)
    throw new ApiError(
      "idempotency_key_reused",
      "This Idempotency-Key was used for another request in the last day. Use a new one.",
    );
  c.header("idempotency-replayed", "true");
  return known.status === 204 ? c.body(null, 204) : c.json(known.body as object, known.status as 200);
}
