import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, severalOf } from "../../frame/search.ts";

export const TABS = ["state", "machine", "work", "use", "history"] as const;
export const KINDS = [
  "onboarding",
  "decommission",
  "stage",
  "allocation",
  "task",
  "record",
  "event",
  "override",
] as const;

/** One node. The address says which part of the node is open, and which kinds of entries its history shows. */
export const nodeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/nodes/$id",
  validateSearch: searchOf({ tab: oneOf(TABS), kind: severalOf(KINDS) }),
});
