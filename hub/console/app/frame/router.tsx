import { type AnyRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Frame } from "./frame.tsx";
import { guarded } from "./guarded.tsx";
import { rootRoute } from "./root-route.ts";
import { ScreenFailed, ScreenLoading, ScreenMissing } from "./screen-states.tsx";
import { SCREENS } from "./screens.ts";
import { readSearch, writeSearch } from "./search.ts";

type RoutesOf<Screens extends readonly { readonly route: AnyRoute }[]> = {
  [K in keyof Screens]: Screens[K]["route"];
};

const routes = SCREENS.map((one) => {
  one.route.update({ component: guarded(one, lazyRouteComponent(one.load, "Page")) });
  return one.route;
}) as unknown as RoutesOf<typeof SCREENS>;

rootRoute.update({ component: Frame, notFoundComponent: ScreenMissing });

export const router = createRouter({
  routeTree: rootRoute.addChildren(routes),
  basepath: "/console",
  parseSearch: readSearch,
  stringifySearch: writeSearch,
  defaultPreload: "intent",
  defaultErrorComponent: ScreenFailed,
  defaultPendingComponent: ScreenLoading,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
