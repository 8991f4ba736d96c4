import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const webhooksRoute = createRoute({ getParentRoute: () => rootRoute, path: "/webhooks" });
