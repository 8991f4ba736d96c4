import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf } from "../../frame/search.ts";

export const DELIVERY_STATES = ["pending", "delivered", "dead"] as const;

export const webhookRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/webhooks/$id",
  validateSearch: searchOf({ state: oneOf(DELIVERY_STATES) }),
});
