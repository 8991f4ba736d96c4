import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

export const batchesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/batches",
  validateSearch: searchOf({ kind: oneOf(["decommission"]), site_id: text(36) }),
});
