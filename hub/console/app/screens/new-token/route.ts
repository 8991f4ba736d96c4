import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const newTokenRoute = createRoute({ getParentRoute: () => rootRoute, path: "/tokens/new" });
