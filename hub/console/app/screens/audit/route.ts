import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

/** The filters of the audit, named as in the API. */
export const auditRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/audit",
  validateSearch: searchOf({
    actor: text(128),
    action: text(100),
    object_kind: text(64),
    object_id: text(128),
    site_id: text(36),
    outcome: oneOf(["done", "refused"]),
    since: text(40),
    until: text(40),
    request_id: text(64),
    address: text(64),
  }),
});
