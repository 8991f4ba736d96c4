import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { ApiError } from "../../shared/api/errors.ts";
import type { TokenKind } from "../gateway/budgets.ts";
import { loginsRefused } from "../metrics/counted/api-requests.ts";
import { type Actor, ANYBODY } from "../people/actor.ts";
import { credentialOf, identify } from "../people/identify.ts";
import { mustHaveRight } from "../people/place.ts";
import type { ApiDependencies } from "./deps.ts";
import type { FailedLogins } from "./failed-logins.ts";
import type { Route } from "./route.ts";
import type { TokenBudgets } from "./token-budgets.ts";

export type Env = { Variables: { requestId: string }; Bindings: Partial<HttpBindings> };

/** The counters that the hub checks before every route: failed logins, and the used budget of each valid token. */
export interface ApiGuard {
  readonly failed: FailedLogins;
  readonly budgets: TokenBudgets;
}

const COSTS = { read: ["request"], write: ["request", "write"] } as const satisfies Record<string, TokenKind[]>;

/** Returns the actor of a request, or throws: `unauthenticated` for an invalid token, `rate_limited`, or `forbidden` without the route's right. */
export async function authorize(
  c: Context<Env>,
  route: Route,
  deps: ApiDependencies,
  { failed, budgets }: ApiGuard,
): Promise<Actor> {
  const { permission, right, place, operationId } = route;
  if (permission === "public" || right === "none") return ANYBODY;
  const credential = credentialOf(c.req.header("authorization"));
  const charged = credential !== null && budgets.chargeKnown(credential.tokenSha256, COSTS[permission]);
  const actor =
    credential === null ? null : await identify(credential, { withoutDatabase: route.withoutDatabase === true }, deps);
  if (credential === null || actor === null) {
    if (credential !== null) {
      // A token that was valid before and has ended costs no budget, and keeps no name in the hub's memory.
      budgets.forget(credential.tokenSha256);
      const address = c.env?.incoming?.socket.remoteAddress ?? "unknown";
      loginsRefused.add({});
      failed.note({ address, operationId, requestId: c.get("requestId") });
    }
    throw new ApiError(
      "unauthenticated",
      "Send a valid token as `Authorization: Bearer <token>`. The first token is in the file admin-token of the hub's state folder, or of MUSTER_SHARED_DIR if that is set.",
    );
  }
  if (!charged) budgets.chargeNew(credential.tokenSha256, actor.name, COSTS[permission]);
  mustHaveRight(actor, { operationId, right, place });
  return actor;
}
