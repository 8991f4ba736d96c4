import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const editProfileRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sites/$id/profiles/$profileId",
});
