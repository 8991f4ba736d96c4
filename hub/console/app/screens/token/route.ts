import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const tokenRoute = createRoute({ getParentRoute: () => rootRoute, path: "/tokens/$id" });
