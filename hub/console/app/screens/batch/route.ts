import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf } from "../../frame/search.ts";

/** One batch. The API has separate routes for batches of onboardings and of decommissions, so the URL of a batch names the kind. */
export const batchRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/batches/$kind/$id",
  validateSearch: searchOf({ status: oneOf(["failed", "pending", "running", "completed", "cancelled"]) }),
});
