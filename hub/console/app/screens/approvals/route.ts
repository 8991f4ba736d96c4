import { createRoute } from "@tanstack/react-router";
import { everyValue } from "../../api/every-value.ts";
import type { Answer } from "../../api/schema.ts";
import { rootRoute } from "../../frame/root-route.ts";
import { searchOf, severalOf, text } from "../../frame/search.ts";

export const APPROVAL_STATES = everyValue<Answer<"listApprovals">["items"][number]["state"]>({
  pending: true,
  approved: true,
  used: true,
  refused: true,
  withdrawn: true,
  expired: true,
});

/**
 * The filters of the list of requests that need a second person's approval. Without a filter by state, the list of approvals shows the open requests.
 */
export const approvalsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/approvals",
  validateSearch: searchOf({ state: severalOf(APPROVAL_STATES), site_id: text(36) }),
});
