import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { searchOf, text } from "../../frame/search.ts";

/** The filters of the list of stored SSH keys, named as in the API. */
export const sshKeysRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/ssh-keys",
  validateSearch: searchOf({ tenant: text(128), name: text(256), site_id: text(36) }),
});
