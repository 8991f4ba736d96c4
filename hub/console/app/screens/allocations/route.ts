import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

export const ALLOCATION_STATUSES = ["granting", "active", "failed", "ending", "ended"] as const;

/** The filters of the list of allocations, with the names of the API. */
export const allocationsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/allocations",
  validateSearch: searchOf({
    hostname: text(63),
    tenant: text(128),
    login_user: text(32),
    site_id: text(36),
    node_id: text(36),
    status: oneOf(ALLOCATION_STATUSES),
  }),
});
