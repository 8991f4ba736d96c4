import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const sitesRoute = createRoute({ getParentRoute: () => rootRoute, path: "/sites" });
