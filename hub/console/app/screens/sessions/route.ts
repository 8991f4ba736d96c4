import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const sessionsRoute = createRoute({ getParentRoute: () => rootRoute, path: "/sessions" });
