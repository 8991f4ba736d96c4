import { createRoute } from "@tanstack/react-router";
import { everyValue } from "../../api/every-value.ts";
import type { Answer } from "../../api/schema.ts";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

type Row = Answer<"listRepairs">["items"][number];

export const REPAIR_STATES = everyValue<Row["state"]>({
  requested: true,
  claimed: true,
  reported: true,
  failed: true,
  escalated: true,
  repaired: true,
  closed: true,
  abandoned: true,
});
export const REPAIR_MODES = everyValue<Row["mode"]>({ full: true, online: true });

/** The filters of the list of repairs, named as in the API. */
export const repairsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/repairs",
  validateSearch: searchOf({
    hostname: text(63),
    claimed_by: text(256),
    state: oneOf(REPAIR_STATES),
    mode: oneOf(REPAIR_MODES),
    site_id: text(36),
    node_id: text(36),
    open: oneOf(["true", "false"]),
  }),
});
