import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { searchOf, text } from "../../frame/search.ts";

/** The filters of the list of SSH key groups, named as in the API. */
export const sshKeyGroupsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/ssh-key-groups",
  validateSearch: searchOf({ tenant: text(128), name: text(256), site_id: text(36) }),
});
