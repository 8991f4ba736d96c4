import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const overviewRoute = createRoute({ getParentRoute: () => rootRoute, path: "/" });
