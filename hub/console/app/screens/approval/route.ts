import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const approvalRoute = createRoute({ getParentRoute: () => rootRoute, path: "/approvals/$id" });
