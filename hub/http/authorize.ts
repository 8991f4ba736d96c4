import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { ApiError } from "../../shared/api/errors.ts";
import type { Right } from "../../shared/api/rights.ts";
import { isUnlimited } from "../db/queries/reach.ts";
import type { TokenKind } from "../gateway/budgets.ts";
import { loginsRefused } from "../metrics/counted/api-requests.ts";
import { type Actor, ANYBODY } from "../people/actor.ts";
import { credentialOf, hasSessionCookie } from "../people/credential.ts";
import type { CredentialWatch } from "../people/credential-watch.ts";
import { identify, refused } from "../people/identify.ts";
import { mustHaveRight } from "../people/place.ts";
import { mustNotBeForged } from "./csrf-refusal.ts";
import type { ApiDependencies } from "./deps.ts";
import type { FailedLogins } from "./failed-logins.ts";
import { type AuditedRequest, targetOfPath } from "./refused-requests.ts";
import { type Route, sourceOf } from "./route.ts";
import { mustHaveNoEventHeaders, senderHash, signedSender } from "./signed-sender.ts";
import type { TokenBudgets } from "./token-budgets.ts";

export type Env = {
  Variables: {
    requestId: string;
    /** The address from which the request came. */
    address: string | null;
    /** The client and the object of the request, for the audit of a refusal; set as soon as the hub knows the client. */
    audited?: AuditedRequest;
  };
  Bindings: Partial<HttpBindings>;
};

/** The counters that the hub checks before every route: failed logins, and the used budget of each valid token. */
export interface ApiGuard {
  readonly failed: FailedLogins;
  readonly budgets: TokenBudgets;
  /** Ends the open streams of a credential that is no longer valid. */
  readonly watch: CredentialWatch;
}

const COSTS = { read: ["request"], write: ["request", "write"] } as const satisfies Record<string, TokenKind[]>;

/** The properties of a route of Muster's API, or of an endpoint in another system's form, that decide whether a caller may send a request. */
type Asked = Pick<Route, "permission" | "right" | "place" | "operationId" | "path"> & {
  readonly media?: unknown;
  readonly withoutDatabase?: true;
};

/** Returns the actor of a request, or throws: `unauthenticated` for an invalid token, `rate_limited`, or `forbidden` without the route's right. */
export async function authorize(
  c: Context<Env>,
  route: Asked,
  deps: ApiDependencies,
  { failed, budgets }: ApiGuard,
): Promise<Actor> {
  const { permission, right, place, operationId } = route;
  if (permission === "public" || right === "none") return ANYBODY;
  if (route.media !== undefined && c.req.header("authorization") === undefined && c.req.query("sender") !== undefined)
    return authorizeSigned(c, route, right, deps, { failed, budgets });
  const { signIn } = deps;
  const headers = { authorization: c.req.header("authorization"), cookie: c.req.header("cookie") };
  mustNotBeForged(c, signIn.publicOrigin, hasSessionCookie(headers, signIn.cookies));
  const credential = credentialOf(headers, signIn.cookies);
  const charged = credential !== null && budgets.chargeKnown(credential.tokenSha256, COSTS[permission]);
  const found =
    credential === null
      ? refused()
      : await identify(credential, { withoutDatabase: route.withoutDatabase === true }, deps);
  if (credential === null || found.kind === "refused") {
    if (credential !== null) {
      // The hub's memory keeps neither a budget nor a name for a token that was valid before and has ended.
      budgets.forget(credential.tokenSha256);
      const address = c.get("address") ?? "unknown";
      // A browser's tabs send requests for a moment after their session has ended, so the hub does not count a request with an ended session as a
      // failed login.
      if (credential.kind !== "session") {
        loginsRefused.add({});
        failed.note({ address, operationId, requestId: c.get("requestId") });
      }
    }
    throw new ApiError("unauthenticated", found.kind === "refused" ? found.detail : "Send a valid token.");
  }
  const { actor } = found;
  noteAudited(c, route, actor);
  if (!charged) budgets.chargeNew(credential.tokenSha256, actor.name, COSTS[permission]);
  mustHaveRight(actor, { operationId, right, place });
  return actor;
}

function noteAudited(c: Context<Env>, { operationId, path }: Asked, actor: Actor): void {
  c.set("audited", {
    source: sourceOf({ actor, address: c.get("address"), requestId: c.get("requestId") }),
    isLimited: !isUnlimited(actor),
    operationId,
    target: targetOfPath(path, c.req.param()),
  });
}

/**
 * Returns the sender of a signed request. Only requests with a right signature count against the budget of the system that signs its signals.
 * Everybody who knows the id of a signal sender can send requests with a wrong signature, which count as failed logins of the client's address.
 */
async function authorizeSigned(
  c: Context<Env>,
  route: Asked,
  right: Right,
  deps: ApiDependencies,
  { failed, budgets }: Pick<ApiGuard, "failed" | "budgets">,
): Promise<Actor> {
  const { operationId, place } = route;
  const sender = c.req.query("sender") ?? "";
  const request = {
    sender,
    id: c.req.header("webhook-id"),
    timestamp: c.req.header("webhook-timestamp"),
    signature: c.req.header("webhook-signature"),
    body: () => c.req.text(),
  };
  const found = await signedSender(request, deps);
  if ("refused" in found) {
    loginsRefused.add({});
    failed.note({ address: c.get("address") ?? "unknown", operationId, requestId: c.get("requestId") });
    throw new ApiError("unauthenticated", found.refused);
  }
  noteAudited(c, route, found.actor);
  budgets.chargeNew(senderHash(sender), found.actor.name, COSTS.write);
  mustHaveRight(found.actor, { operationId, right, place });
  mustHaveNoEventHeaders(c.req.header());
  return found.actor;
}
