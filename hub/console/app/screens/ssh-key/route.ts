import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const sshKeyRoute = createRoute({ getParentRoute: () => rootRoute, path: "/ssh-keys/$id" });
