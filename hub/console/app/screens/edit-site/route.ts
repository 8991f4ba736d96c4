import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const editSiteRoute = createRoute({ getParentRoute: () => rootRoute, path: "/sites/$id/edit" });
