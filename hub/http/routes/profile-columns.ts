import type { z } from "zod";
import type { Profile, ProfileCreate } from "../../../shared/api/profiles.ts";
import type { MaasSiteProfile } from "../../db/schema/index.ts";

/** The database column of each field of a profile in the API. */
const COLUMNS = {
  name: "name",
  description: "description",
  distro_series: "distroSeries",
  architecture: "architecture",
  pxe_iface: "pxeIface",
  pxe_vlan_vid: "pxeVlanVid",
  node_pxe_iface: "nodePxeIface",
  commissioning_scripts: "commissioningScripts",
  testing_scripts: "testingScripts",
  strict_pxe_preflight: "strictPxePreflight",
  enable_phase2_roce: "enablePhase2Roce",
  roce_required: "roceRequired",
  require_hw_sync: "requireHwSync",
  hardware_sync_interval_seconds: "hardwareSyncIntervalSeconds",
  enable_deploy_retry_on_datasource_failure: "enableDeployRetryOnDatasourceFailure",
  max_deploy_retry_attempts: "maxDeployRetryAttempts",
  auto_claim_single_new_machine: "autoClaimSingleNewMachine",
  batch_max_parallel: "batchMaxParallel",
  deploy_max_parallel: "deployMaxParallel",
  site_bootstrap_bundle_ref: "siteBootstrapBundleRef",
  initialize_extra_disks: "initializeExtraDisks",
  erase_unexpected_signatures: "eraseUnexpectedSignatures",
  boot_disk_pattern: "bootDiskPattern",
  turnover_mode: "turnoverMode",
  scratch_folders: "scratchFolders",
  data_shares: "dataShares",
  weka_prefixes: "wekaPrefixes",
  clear_free_space: "clearFreeSpace",
  purge_disks: "purgeDisks",
  gpu_reset_up_to: "gpuResetUpTo",
  gpu_claim_level: "gpuClaimLevel",
  gpu_claim_percent: "gpuClaimPercent",
  soft_reset_after_root: "softResetAfterRoot",
  enrollment_token_ttl_seconds: "enrollmentTokenTtlSeconds",
  preflight_timeout_seconds: "preflightTimeoutSeconds",
  discovery_timeout_seconds: "discoveryTimeoutSeconds",
  commission_timeout_seconds: "commissionTimeoutSeconds",
  configure_timeout_seconds: "configureTimeoutSeconds",
  deploy_timeout_seconds: "deployTimeoutSeconds",
  hardware_sync_seed_timeout_seconds: "hardwareSyncSeedTimeoutSeconds",
  hardware_sync_health_timeout_seconds: "hardwareSyncHealthTimeoutSeconds",
  agent_enrollment_timeout_seconds: "agentEnrollmentTimeoutSeconds",
  release_timeout_seconds: "releaseTimeoutSeconds",
  power_off_timeout_seconds: "powerOffTimeoutSeconds",
  retired_release_after_seconds: "retiredReleaseAfterSeconds",
  readiness_policy: "readinessPolicy",
  probes: "probes",
  second_person: "secondPerson",
} as const satisfies Record<keyof ProfileCreate, keyof MaasSiteProfile>;

type Columns = (typeof COLUMNS)[keyof typeof COLUMNS];

export const profileColumns = (fields: ProfileCreate): Pick<MaasSiteProfile, Columns> =>
  renamed(fields) as Pick<MaasSiteProfile, Columns>;

/** Returns the database columns of all given fields of a profile; an undefined field counts as not given. */
export const givenProfileColumns = (
  fields: { readonly [K in keyof ProfileCreate]?: ProfileCreate[K] | undefined },
): Partial<Pick<MaasSiteProfile, Columns>> => renamed(fields);

const renamed = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(COLUMNS).flatMap(([field, column]) =>
      fields[field] === undefined ? [] : [[column, fields[field]]],
    ),
  );

export function toProfile(row: MaasSiteProfile): z.input<typeof Profile> {
  const fields = Object.fromEntries(
    Object.entries(COLUMNS).map(([field, column]) => [field, row[column]]),
  ) as ProfileCreate;
  return {
    ...fields,
    id: row.id,
    site_id: row.siteId,
    status: row.status,
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  };
}
