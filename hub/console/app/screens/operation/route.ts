import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

/** One operation. The address says which view of the timeline is open, and which stage's details. */
export const operationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/operations/$id",
  validateSearch: searchOf({ view: oneOf(["table"]), stage: text(64) }),
});
