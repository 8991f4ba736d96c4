import { createRootRoute } from "@tanstack/react-router";

/** The parent of every screen's route. */
export const rootRoute = createRootRoute();
