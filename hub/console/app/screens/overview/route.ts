import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf } from "../../frame/search.ts";

/** The periods, in hours, that the overview's charts can cover. */
export const SPANS = ["24", "168", "720"] as const;

export const overviewRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  validateSearch: searchOf({ hours: oneOf(SPANS) }),
});
