import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { searchOf, text } from "../../frame/search.ts";

/** The form for a new allocation. A link from a node's screen to the form for a new allocation fills in the node's hostname. */
export const newAllocationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/allocations/new",
  validateSearch: searchOf({ hostname: text(63) }),
});
