import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const recordRoute = createRoute({ getParentRoute: () => rootRoute, path: "/records/$id" });
