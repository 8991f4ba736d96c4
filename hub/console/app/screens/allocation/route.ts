import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const allocationRoute = createRoute({ getParentRoute: () => rootRoute, path: "/allocations/$id" });
