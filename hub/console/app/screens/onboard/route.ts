import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

/** The form that onboards one host, or many hosts from a table. A link from a site's screen to the onboarding form fills in the site. */
export const onboardRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/onboard",
  validateSearch: searchOf({ site_id: text(36), many: oneOf(["true"]) }),
});
