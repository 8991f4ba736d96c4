import { z } from "zod";
import { ProfileId, SiteId } from "../ids.ts";
import { Probes } from "../probes.ts";
import { ReadinessPolicy } from "../readiness-policy.ts";
import { GPU_LEVELS } from "../sanitization-record.ts";
import { GPU_RESET_MEANS } from "../tasks/gpu-scrub.ts";
import { DataShare, ListedDisks, ScratchFolder } from "../tasks/storage-cleanup.ts";
import { TURNOVER_MODES } from "../workflow-status.ts";
import { SECOND_PERSON, SecondPerson } from "./approvals.ts";
import { Activation, siteFields } from "./sites.ts";
import { InterfaceName, Seconds, Timestamp } from "./values.ts";

/**
 * MAAS chooses commissioning and test scripts by their names or tags. The name of a MAAS script must not contain a comma, because MAAS separates the
 * names in its list by commas (maas 2.5).
 */
const ScriptName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, "must be the name or tag of a script: letters, digits, . _ -");

/** Every wait of an onboarding has its time-out in the profile (lifecycle 3.6, 3.7, 4.14). */
const profileFields = {
  name: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[a-z0-9][a-z0-9-]*$/, "must be lower-case letters, digits and hyphens"),
  description: z.string().max(512).nullable().default(null),
  distro_series: z.string().min(1).max(64).default("ubuntu/noble"),
  architecture: z.string().min(1).max(64).default("amd64/generic"),
  /**
   * A profile may replace values of its site, for racks or hosts that differ from the rest of the site (lifecycle 3.6). If a value of the profile is
   * null, the site's value applies.
   */
  pxe_iface: InterfaceName.nullable().describe("Replaces the value of the site").default(null),
  pxe_vlan_vid: siteFields.pxe_vlan_vid.nullable().describe("Replaces the value of the site").default(null),
  node_pxe_iface: InterfaceName.nullable().describe("Replaces the value of the site").default(null),
  /** If the list of commissioning scripts is empty, MAAS chooses the scripts. */
  commissioning_scripts: z.array(ScriptName).max(32).default([]),
  /** If the list of test scripts is the single word `none`, MAAS runs no test script. */
  testing_scripts: z.array(ScriptName).max(32).default([]),
  strict_pxe_preflight: z
    .boolean()
    .describe("Refuse a host whose PXE wiring looks wrong; if false, the onboarding continues nevertheless")
    .default(true),
  enable_phase2_roce: z.boolean().describe("Give hosts the addresses of their RoCE rows").default(true),
  roce_required: z.boolean().describe("Bar scheduling on a node whose host lacks a RoCE address").default(true),
  require_hw_sync: z
    .boolean()
    .describe("A host becomes active only when its hardware sync arrives in MAAS")
    .default(true),
  hardware_sync_interval_seconds: z
    .int()
    .min(60)
    .max(86_400)
    .describe("Interval of hardware sync; the probe compares it with the setting of the region")
    .default(900),
  enable_deploy_retry_on_datasource_failure: z
    .boolean()
    .describe("Deploy again automatically if a first boot found no datasource")
    .default(true),
  max_deploy_retry_attempts: z.int().min(0).max(5).describe("Most automatic redeploys of a host").default(1),
  auto_claim_single_new_machine: z
    .boolean()
    .describe(
      "Claim the only New machine without a BMC address in MAAS for the host; if there are several, none is claimed",
    )
    .default(false),
  batch_max_parallel: z
    .int()
    .min(1)
    .max(1000)
    .describe("Most onboardings of the profile at once, and most decommissions of batches")
    .default(10),
  deploy_max_parallel: z.int().min(1).max(1000).describe("Most deploys of the profile at once").default(10),
  site_bootstrap_bundle_ref: z
    .string()
    .max(512)
    .nullable()
    .describe("Script that the first boot downloads and runs: https://...#sha256=<64 hex digits>")
    .default(null),
  /** Formatting destroys data, so the first boot of a host formats extra disks only if `initialize_extra_disks` is true (lifecycle 4.3). */
  initialize_extra_disks: z
    .boolean()
    .describe("DESTROYS DATA: the first boot partitions and formats every free disk except the root disk")
    .default(false),
  erase_unexpected_signatures: z
    .boolean()
    .describe("DESTROYS DATA, together with initialize_extra_disks: disks with unknown content are formatted too")
    .default(false),
  boot_disk_pattern: z
    .string()
    .min(1)
    .max(256)
    .describe(
      "Regular expression that matches model, name or id_path of one disk, ignoring case; the system is installed on this disk",
    )
    .default("boss|boot optimized|m\\.2"),
  turnover_mode: z
    .enum(TURNOVER_MODES)
    .describe("How a node is cleaned after a tenant without root: in place, or by a new deploy")
    .default("soft_reset"),
  scratch_folders: z
    .array(ScratchFolder)
    .max(16)
    .describe("Folders besides /tmp and /var/tmp that a soft reset empties; a missing folder is skipped")
    .default([]),
  data_shares: z
    .array(DataShare)
    .max(64)
    .describe("Mount points of data disks that a soft reset empties, as /share1; a share without a mount fails")
    .default([]),
  weka_prefixes: z
    .array(ScratchFolder)
    .max(16)
    .describe("Folders below which tenants mount Weka file systems; a soft reset removes their lines in /etc/fstab")
    .default([]),
  clear_free_space: z
    .boolean()
    .describe("Overwrite the free space of the emptied file systems with zeros, which may take hours")
    .default(false),
  purge_disks: ListedDisks.describe(
    "DESTROYS DATA: serial numbers of the data disks that a soft reset purges by the disk's own sanitize or format command, which gives a disk at a scratch folder or share its file system back; a host that has none of them is not cleaned",
  ).default([]),
  soft_reset_after_root: z
    .boolean()
    .describe("Clean a node in place even after a tenant with root, who may have changed its kernel (decision C4)")
    .default(false),
  gpu_reset_up_to: z
    .enum(GPU_RESET_MEANS)
    .describe(
      "The strongest means by which a turnover may free GPUs: the GPU's reset, then a reload of the driver, then one power cycle of the host by MAAS (decision C3)",
    )
    .default("reload"),
  gpu_claim_level: z
    .enum(GPU_LEVELS)
    .describe(
      "What a turnover must show about GPU memory; above reset_only it overwrites the memory, which GPUs of NVIDIA and AMD allow (decision C2)",
    )
    .default("reset_only"),
  gpu_claim_percent: z
    .int()
    .min(1)
    .max(100)
    .describe(
      "How much of each GPU's memory must be overwritten, in percent; the driver keeps one or two percent for itself",
    )
    .default(95),
  enrollment_token_ttl_seconds: Seconds.default(7200),
  preflight_timeout_seconds: Seconds.default(900),
  discovery_timeout_seconds: Seconds.default(1800),
  commission_timeout_seconds: Seconds.default(5400),
  configure_timeout_seconds: Seconds.default(900),
  deploy_timeout_seconds: Seconds.default(7200),
  hardware_sync_seed_timeout_seconds: Seconds.default(1800),
  hardware_sync_health_timeout_seconds: Seconds.default(2700),
  agent_enrollment_timeout_seconds: Seconds.default(1800),
  /** The time-out of a machine's release includes the erase of the machine's disks, because MAAS may be configured to erase disks at each release. */
  release_timeout_seconds: Seconds.default(14_400),
  power_off_timeout_seconds: Seconds.default(900),
  /**
   * How long a retired node stays deployed before the hub releases its machine (lifecycle 6.4). If `retired_release_after_seconds` is null, the hub
   * never releases the machine of a retired node automatically.
   */
  retired_release_after_seconds: z.int().min(0).max(31_536_000).nullable().default(3600),
  readiness_policy: ReadinessPolicy.describe(
    "Groups of conditions that a node must have before it is ready, besides those that every node must have",
  ).default([]),
  probes: Probes.describe(
    "How the hub tests from outside whether a host answers; the results are conditions of the node",
  ).default([]),
  second_person: z
    .array(SecondPerson)
    .max(SECOND_PERSON.length)
    .refine((entries) => new Set(entries).size === entries.length, "names an entry twice")
    .describe("What waits for a second person's approval: erasing, taking a host out of the fleet, changed scripts")
    .default([]),
};

/**
 * An enrollment token, with which a host enrolls, must stay valid longer than the slowest deploy and first boot that the profile allows (lifecycle
 * 12).
 */
const tokenOutlivesDeploy = (p: {
  enrollment_token_ttl_seconds?: number | undefined;
  deploy_timeout_seconds?: number | undefined;
}): boolean =>
  p.enrollment_token_ttl_seconds === undefined ||
  p.deploy_timeout_seconds === undefined ||
  p.enrollment_token_ttl_seconds >= p.deploy_timeout_seconds;
const ttlMessage = {
  message: "must be at least deploy_timeout_seconds, or the token dies before the host boots",
  path: ["enrollment_token_ttl_seconds"],
};

export const ProfileCreate = z.strictObject(profileFields).refine(tokenOutlivesDeploy, ttlMessage);
export type ProfileCreate = z.output<typeof ProfileCreate>;
/**
 * An API request that changes a profile contains only the changed fields, and absent fields get no defaults. After the hub has merged the changed
 * fields into a profile, it checks that enrollment tokens stay valid long enough.
 */
export const ProfilePatch = z.strictObject({
  ...(Object.fromEntries(
    Object.entries(profileFields).map(([key, schema]) => [
      key,
      (schema instanceof z.ZodDefault ? schema.unwrap() : schema).optional(),
    ]),
  ) as {
    [K in keyof typeof profileFields]: z.ZodOptional<
      (typeof profileFields)[K] extends z.ZodDefault<infer S> ? S : (typeof profileFields)[K]
    >;
  }),
  status: Activation.optional(),
});
export type ProfilePatch = z.output<typeof ProfilePatch>;
export const Profile = z.strictObject({
  id: ProfileId,
  site_id: SiteId,
  ...profileFields,
  status: Activation,
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type Profile = z.output<typeof Profile>;
export const profileTtlIsSound = tokenOutlivesDeploy;
