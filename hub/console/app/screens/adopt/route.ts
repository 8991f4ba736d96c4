import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { searchOf, text } from "../../frame/search.ts";

/** The form that adopts machines which MAAS has deployed without Muster. A link from a site's screen to the adoption form fills in the site. */
export const adoptRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/adopt",
  validateSearch: searchOf({ site_id: text(36) }),
});
