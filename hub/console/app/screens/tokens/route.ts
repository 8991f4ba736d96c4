import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

export const ROLES = ["viewer", "operator", "admin", "provisioner", "tenant", "repair"] as const;

/** The filters of the list of tokens, with the names of the API. */
export const tokensRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/tokens",
  validateSearch: searchOf({ name: text(63), role: oneOf(ROLES) }),
});
