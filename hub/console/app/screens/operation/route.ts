import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

/** One operation. The URL of an operation's screen says whether the timeline is shown as a table, and which stage's details are open. */
export const operationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/operations/$id",
  validateSearch: searchOf({ view: oneOf(["table"]), stage: text(64) }),
});
