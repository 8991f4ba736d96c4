import { createRoute } from "@tanstack/react-router";
import { everyValue } from "../../api/every-value.ts";
import type { Answer } from "../../api/schema.ts";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, severalOf } from "../../frame/search.ts";

export const TABS = ["state", "machine", "work", "use", "history"] as const;
export const KINDS = everyValue<Answer<"exportNodeLifecycle">["items"][number]["kind"]>({
  onboarding: true,
  decommission: true,
  stage: true,
  allocation: true,
  task: true,
  record: true,
  event: true,
  override: true,
});

/** One node. The URL says which tab of the node's screen is open, and which kinds of entries its history shows. */
export const nodeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/nodes/$id",
  validateSearch: searchOf({ tab: oneOf(TABS), kind: severalOf(KINDS) }),
});
