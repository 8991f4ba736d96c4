import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf } from "../../frame/search.ts";

/** One batch. Batches of onboardings and of decommissions have routes of their own in the API, so the address names the kind. */
export const batchRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/batches/$kind/$id",
  validateSearch: searchOf({ status: oneOf(["failed", "pending", "running", "completed", "cancelled"]) }),
});
