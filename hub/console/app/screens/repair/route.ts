import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const repairRoute = createRoute({ getParentRoute: () => rootRoute, path: "/repairs/$id" });
