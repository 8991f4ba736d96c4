import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const skusRoute = createRoute({ getParentRoute: () => rootRoute, path: "/skus" });
