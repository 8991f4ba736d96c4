import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, severalOf, text } from "../../frame/search.ts";

export const KINDS = [
  "onboarding",
  "drain",
  "remove",
  "release",
  "soft_reset",
  "reimage",
  "storage_cleanup",
  "full_decommission",
] as const;
export const STATUSES = [
  "pending",
  "running",
  "compensating",
  "failed_retryable",
  "failed_manual_intervention",
  "failed",
  "completed",
  "reconciled",
  "cancelled",
] as const;
export const FAILURES = [
  "input_config_error",
  "site_capability_missing",
  "upstream_transient",
  "bmc_power_failure",
  "pxe_discovery_failure",
  "hardware_mismatch",
  "deploy_cloud_init_failure",
  "post_deploy_connectivity_failure",
  "hardware_sync_failure",
  "agent_enrollment_failure",
  "state_ambiguity",
] as const;

/** The filters and the order of the list of operations, with the names of the API. */
export const operationsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/operations",
  validateSearch: searchOf({
    hostname_prefix: text(63),
    kind: severalOf(KINDS),
    status: severalOf(STATUSES),
    failure_class: severalOf(FAILURES),
    site_id: text(36),
    node_id: text(36),
    batch_id: text(36),
    requested_by: text(128),
    slow: oneOf(["true", "false"]),
    sort: oneOf(["-requested_at", "requested_at", "stage_deadline", "-stage_deadline"]),
  }),
});
