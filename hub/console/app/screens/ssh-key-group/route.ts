import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";

export const sshKeyGroupRoute = createRoute({ getParentRoute: () => rootRoute, path: "/ssh-key-groups/$id" });
