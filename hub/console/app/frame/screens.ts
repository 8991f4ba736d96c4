import { nodesRoute } from "../screens/nodes/route.ts";
import { overviewRoute } from "../screens/overview/route.ts";
import { type Screen, screen } from "./screen.ts";

/**
 * All screens of the console, in the order of the navigation. A new screen is a folder under `screens/` and one entry here (README.md). The tuple type
 * keeps each route's own type, so a link to a screen is checked by the compiler.
 */
export const SCREENS = [
  screen(overviewRoute, {
    title: "Overview",
    right: "read_fleet",
    group: "Fleet",
    key: "o",
    load: () => import("../screens/overview/page.tsx"),
  }),
  screen(nodesRoute, {
    title: "Nodes",
    right: "read_nodes",
    group: "Fleet",
    key: "n",
    load: () => import("../screens/nodes/page.tsx"),
  }),
] as const satisfies readonly Screen[];
