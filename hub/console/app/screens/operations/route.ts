import { createRoute } from "@tanstack/react-router";
import { everyValue } from "../../api/every-value.ts";
import type { Answer } from "../../api/schema.ts";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, severalOf, text } from "../../frame/search.ts";

export const KINDS = everyValue<Answer<"listOperations">["items"][number]["kind"]>({
  onboarding: true,
  drain: true,
  remove: true,
  release: true,
  soft_reset: true,
  reimage: true,
  storage_cleanup: true,
  full_decommission: true,
  reinstall: true,
});
export const STATUSES = everyValue<Answer<"listOperations">["items"][number]["status"] | "failed">({
  pending: true,
  running: true,
  compensating: true,
  failed_retryable: true,
  failed_manual_intervention: true,
  failed: true,
  completed: true,
  reconciled: true,
  cancelled: true,
});
export const FAILURES = everyValue<NonNullable<Answer<"listOperations">["items"][number]["failure_class"]>>({
  input_config_error: true,
  site_capability_missing: true,
  upstream_transient: true,
  bmc_power_failure: true,
  pxe_discovery_failure: true,
  hardware_mismatch: true,
  deploy_cloud_init_failure: true,
  post_deploy_connectivity_failure: true,
  hardware_sync_failure: true,
  agent_enrollment_failure: true,
  state_ambiguity: true,
});

/** The filters and the order of the list of operations, named as in the API. */
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
