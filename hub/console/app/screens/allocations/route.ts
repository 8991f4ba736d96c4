import { createRoute } from "@tanstack/react-router";
import { everyValue } from "../../api/every-value.ts";
import type { Answer } from "../../api/schema.ts";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

export const ALLOCATION_STATUSES = everyValue<Answer<"listAllocations">["items"][number]["status"]>({
  granting: true,
  active: true,
  failed: true,
  ending: true,
  ended: true,
});

/** The filters of the list of allocations, named as in the API. */
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
