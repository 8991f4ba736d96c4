import { SECOND_PERSON, type SecondPerson } from "../../../shared/api/approvals.ts";
import type { ProfileId, SiteId } from "../../../shared/ids.ts";
import type { Probes } from "../../../shared/probes.ts";
import type { ReadinessPolicy } from "../../../shared/readiness-policy.ts";
import { GPU_LEVELS } from "../../../shared/sanitization-record.ts";
import { GPU_RESET_MEANS } from "../../../shared/tasks/gpu-scrub.ts";
import { TURNOVER_MODES } from "../../../shared/workflow-status.ts";
import { boolean, check, integer, jsonb, pgTable, sql, text, unique, uuid } from "../orm.ts";
import { createdAt, oneOf, updatedAt } from "./columns.ts";
import { maasSites } from "./maas-sites.ts";

/** Each row is a profile, which is an operational policy of a site (lifecycle 3.6, 3.7; decision W4). */
export const maasSiteProfiles = pgTable(
  "maas_site_profiles",
  {
    id: uuid("id").$type<ProfileId>().primaryKey().default(sql`gen_random_uuid()`),
    siteId: uuid("site_id")
      .$type<SiteId>()
      .notNull()
      .references(() => maasSites.id),
    name: text("name").notNull(),
    description: text("description"),
    distroSeries: text("distro_series").notNull(),
    architecture: text("architecture").notNull(),
    pxeIface: text("pxe_iface"),
    pxeVlanVid: integer("pxe_vlan_vid"),
    nodePxeIface: text("node_pxe_iface"),
    commissioningScripts: text("commissioning_scripts").array().notNull().default(sql`'{}'`),
    testingScripts: text("testing_scripts").array().notNull().default(sql`'{}'`),
    strictPxePreflight: boolean("strict_pxe_preflight").notNull(),
    enablePhase2Roce: boolean("enable_phase2_roce").notNull(),
    roceRequired: boolean("roce_required").notNull().default(true),
    requireHwSync: boolean("require_hw_sync").notNull(),
    hardwareSyncIntervalSeconds: integer("hardware_sync_interval_seconds").notNull(),
    enableDeployRetryOnDatasourceFailure: boolean("enable_deploy_retry_on_datasource_failure").notNull(),
    maxDeployRetryAttempts: integer("max_deploy_retry_attempts").notNull(),
    autoClaimSingleNewMachine: boolean("auto_claim_single_new_machine").notNull(),
    batchMaxParallel: integer("batch_max_parallel").notNull(),
    deployMaxParallel: integer("deploy_max_parallel").notNull(),
    siteBootstrapBundleRef: text("site_bootstrap_bundle_ref"),
    initializeExtraDisks: boolean("initialize_extra_disks").notNull(),
    eraseUnexpectedSignatures: boolean("erase_unexpected_signatures").notNull(),
    bootDiskPattern: text("boot_disk_pattern").notNull(),
    turnoverMode: text("turnover_mode", { enum: TURNOVER_MODES }).notNull().default("soft_reset"),
    scratchFolders: text("scratch_folders").array().notNull().default(sql`'{}'`),
    dataShares: text("data_shares").array().notNull().default(sql`'{}'`),
    wekaPrefixes: text("weka_prefixes").array().notNull().default(sql`'{}'`),
    clearFreeSpace: boolean("clear_free_space").notNull().default(false),
    purgeDisks: text("purge_disks").array().notNull().default(sql`'{}'`),
    gpuResetUpTo: text("gpu_reset_up_to", { enum: GPU_RESET_MEANS }).notNull().default("reload"),
    gpuClaimLevel: text("gpu_claim_level", { enum: GPU_LEVELS }).notNull().default("reset_only"),
    gpuClaimPercent: integer("gpu_claim_percent").notNull().default(95),
    softResetAfterRoot: boolean("soft_reset_after_root").notNull().default(false),
    enrollmentTokenTtlSeconds: integer("enrollment_token_ttl_seconds").notNull(),
    preflightTimeoutSeconds: integer("preflight_timeout_seconds").notNull(),
    discoveryTimeoutSeconds: integer("discovery_timeout_seconds").notNull(),
    commissionTimeoutSeconds: integer("commission_timeout_seconds").notNull(),
    configureTimeoutSeconds: integer("configure_timeout_seconds").notNull(),
    deployTimeoutSeconds: integer("deploy_timeout_seconds").notNull(),
    hardwareSyncSeedTimeoutSeconds: integer("hardware_sync_seed_timeout_seconds").notNull(),
    hardwareSyncHealthTimeoutSeconds: integer("hardware_sync_health_timeout_seconds").notNull(),
    agentEnrollmentTimeoutSeconds: integer("agent_enrollment_timeout_seconds").notNull(),
    releaseTimeoutSeconds: integer("release_timeout_seconds").notNull(),
    powerOffTimeoutSeconds: integer("power_off_timeout_seconds").notNull(),
    /** The seconds between a node's retirement and the release of its machine; null if only a person may ask for the release. */
    retiredReleaseAfterSeconds: integer("retired_release_after_seconds"),
    /** Which conditions a node must have before it is ready, besides those that every node must have. */
    readinessPolicy: jsonb("readiness_policy").$type<ReadinessPolicy>().notNull().default([]),
    /** How the hub tests from outside whether the profile's hosts answer. */
    probes: jsonb("probes").$type<Probes>().notNull().default([]),
    /** The operations on the profile's hosts that wait for the approval of a second person (decision I11). */
    secondPerson: text("second_person").array().$type<SecondPerson[]>().notNull().default(sql`'{}'`),
    status: text("status", { enum: ["active", "disabled"] })
      .notNull()
      .default("active"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (t) => [
    check("maas_site_profiles_turnover_mode_check", oneOf("turnover_mode", TURNOVER_MODES)),
    check("maas_site_profiles_gpu_reset_up_to_check", oneOf("gpu_reset_up_to", GPU_RESET_MEANS)),
    check("maas_site_profiles_gpu_claim_level_check", oneOf("gpu_claim_level", GPU_LEVELS)),
    check(
      "maas_site_profiles_second_person_check",
      sql.raw(`"second_person" <@ '{${SECOND_PERSON.join(",")}}'::text[]`),
    ),
    unique("maas_site_profiles_name_key").on(t.siteId, t.name),
    check("maas_site_profiles_status_check", oneOf("status", ["active", "disabled"])),
  ],
);
export type MaasSiteProfile = typeof maasSiteProfiles.$inferSelect;
