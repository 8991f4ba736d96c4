import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const authorityRoute = createRoute({ getParentRoute: () => rootRoute, path: "/keys" });
