import { z } from "zod";

/** Onboardings and decommissions have the same statuses (lifecycle 4.8, state model 4.1 and 5.1). */
export const WORKFLOW_STATUSES = [
  "pending",
  "running",
  "completed",
  "failed_retryable",
  "failed_manual_intervention",
  "cancelled",
  "compensating",
  "reconciled",
] as const;
export const WorkflowStatus = z.enum(WORKFLOW_STATUSES);
export type WorkflowStatus = z.output<typeof WorkflowStatus>;
/** As a filter of a list, `failed` means both statuses of a failed workflow. */
export const StatusFilter = z.enum([...WORKFLOW_STATUSES, "failed"]);
export type StatusFilter = z.output<typeof StatusFilter>;

/**
 * A workflow with a final status does nothing more, and another workflow may hold its subjects, such as its host and its BMC. A failed workflow is
 * not final and keeps its subjects, such as its host, so that no other workflow can hold them.
 */
export const TERMINAL_WORKFLOW_STATUSES = [
  "completed",
  "cancelled",
  "reconciled",
] as const satisfies readonly WorkflowStatus[];

/** A workflow that has failed continues only after an operator's verb, such as retry or cancel. */
export const FAILED_WORKFLOW_STATUSES = [
  "failed_retryable",
  "failed_manual_intervention",
] as const satisfies readonly WorkflowStatus[];
const FAILED: ReadonlySet<WorkflowStatus> = new Set(FAILED_WORKFLOW_STATUSES);
export const isFailed = (status: WorkflowStatus): boolean => FAILED.has(status);

/** The operator's verbs that stop a workflow (lifecycle 4.9). A verb that arrives during a run of a workflow's stage takes effect after the run. */
export const STOP_VERBS = ["cancel", "restart_clean", "mark_manual_intervention"] as const;
export type StopVerb = (typeof STOP_VERBS)[number];

/** In a workflow's history (lifecycle 4.2.1), `waiting` marks a wait with a new reason, and `retrying` a planned retry. */
export const STAGE_EVENT_STATUSES = [
  "started",
  "waiting",
  "succeeded",
  "skipped",
  "retrying",
  "failed",
  "returned",
  "compensated",
] as const;
export type StageEventStatus = (typeof STAGE_EVENT_STATUSES)[number];

/**
 * The provisioning stages bring a machine of MAAS's status Ready into service as a node, in this order. Each workflow that deploys a machine has the
 * provisioning stages as its last stages.
 */
export const PROVISIONING_STAGES = [
  "configure_storage",
  "apply_roce_phase2",
  "ensure_pxe_interface_auto",
  "render_cloud_init",
  "deploy_via_maas",
  "wait_for_deployed",
  "classify_deploy_failure",
  "recover_for_datasource_retry",
  "ensure_hardware_sync_configured",
  "wait_for_hardware_sync_healthy",
  "wait_for_agent_enrollment",
] as const;
export type ProvisioningStage = (typeof PROVISIONING_STAGES)[number];

export const ONBOARDING_STAGES = [
  "load_site_config",
  "resolve_power_credentials",
  "create_or_find_in_maas",
  "commission_node",
  "wait_for_ready",
  ...PROVISIONING_STAGES,
  "check_hardware",
] as const;
export type OnboardingStage = (typeof ONBOARDING_STAGES)[number];

/**
 * A decommission of the mode `drain` brings a node to the status `retired`. A decommission of the mode `remove` brings a retired node to the status
 * `deleted`. A decommission of the mode `release` returns the machine of a retired node to MAAS and powers the machine off (lifecycle 6.4). The mode
 * `soft_reset` cleans a node for the next tenant and keeps its system. The mode `reimage` gives the node a new system. The mode `storage_cleanup`
 * cleans the storage of a node without a tenant. The mode `full_decommission` (lifecycle 5.1) takes a node and its host out of the fleet: a drain, a
 * release and a remove in one operation. The mode `reinstall` gives the host of an instance a new system, and the tenant keeps the instance (decision
 * N11).
 */
export const DECOMMISSION_MODES = [
  "drain",
  "remove",
  "release",
  "soft_reset",
  "reimage",
  "storage_cleanup",
  "full_decommission",
  "reinstall",
] as const;
export type DecommissionMode = (typeof DECOMMISSION_MODES)[number];

/** The modes of decommissions that clean a node between two tenants (architecture 14.2). */
export const TURNOVER_MODES = ["soft_reset", "reimage"] as const satisfies readonly DecommissionMode[];

/** Each mode of a decommission has its stages in order, with the names of state model 5.2. */
export const STAGES_OF_MODE = {
  drain: ["disable_node", "drain_node", "retire_gpuaas_node"],
  release: ["release_maas_node", "power_off_maas_node"],
  remove: ["remove_gpuaas_node_record"],
  soft_reset: [
    "disable_node",
    "drain_node",
    "revoke_users",
    "cleanup_storage",
    "scrub_gpu",
    "power_cycle_maas_node",
    "overwrite_gpu_memory",
    "validate_clean_node",
    "record_sanitization",
    "check_hardware",
    "enable_node",
  ],
  reimage: [
    "disable_node",
    "drain_node",
    "load_site_config",
    "read_disks",
    "release_maas_node",
    "power_off_maas_node",
    ...PROVISIONING_STAGES,
    "take_baseline",
    "check_disks",
    "scrub_gpu",
    "power_cycle_maas_node",
    "overwrite_gpu_memory",
    "validate_clean_node",
    "record_sanitization",
    "check_hardware",
    "enable_node",
  ],
  storage_cleanup: ["disable_node", "drain_node", "cleanup_storage", "validate_clean_node", "enable_node"],
  full_decommission: [
    "disable_node",
    "force_release_allocations",
    "drain_node",
    "revoke_users",
    "cleanup_storage",
    "record_sanitization",
    "retire_gpuaas_node",
    "choose_secrets",
    "release_maas_node",
    "power_off_maas_node",
    "remove_gpuaas_node_record",
    "cleanup_secrets",
    "remove_maas_record",
  ],
  reinstall: [
    "disable_node",
    "load_site_config",
    "release_maas_node",
    "power_off_maas_node",
    ...PROVISIONING_STAGES,
    "take_baseline",
    "check_hardware",
    "restore_tenant",
    "enable_node",
  ],
} as const satisfies Readonly<Record<DecommissionMode, readonly [string, ...string[]]>>;
export type DecommissionStage = (typeof STAGES_OF_MODE)[DecommissionMode][number];

export const DECOMMISSION_STAGES = [...new Set(Object.values(STAGES_OF_MODE).flat())] as [
  DecommissionStage,
  ...DecommissionStage[],
];
