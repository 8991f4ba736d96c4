import { createRoute } from "@tanstack/react-router";
import { everyValue } from "../../api/every-value.ts";
import type { Answer } from "../../api/schema.ts";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

type Details = NonNullable<Answer<"listDrift">["items"][number]["drift_details"]>;

export const SEVERITIES = everyValue<Details["severity"]>({ critical: true, high: true, warning: true, info: true });
export const RULES = everyValue<Details["rule"]>({
  machine_deleted: true,
  released_outside: true,
  redeployed_outside: true,
  hardware_failure: true,
  recommissioned_outside: true,
  rescue_mode: true,
  unknown_maas_status: true,
  powered_off: true,
  agent_offline: true,
  hardware_sync_stopped: true,
  hardware_sync_interval: true,
  host_changed: true,
  retired_but_deployed: true,
});

/**
 * The filters of the list of nodes that differ from their machines in MAAS. Without the filter `known`, the list has only the nodes whose differences
 * from MAAS nobody has acknowledged.
 */
export const driftRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/drift",
  validateSearch: searchOf({
    site_id: text(36),
    rule: oneOf(RULES),
    severity: oneOf(SEVERITIES),
    known: oneOf(["true"]),
  }),
});
