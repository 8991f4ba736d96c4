import { z } from "zod";
import { CREDENTIAL_WARNINGS, CREDENTIALS } from "../events.ts";
import { ProfileId, SiteId } from "../ids.ts";
import { Reason } from "./decommissions.ts";
import { countsFailures } from "./extensions.ts";
import { Hostname, InterfaceName, IpAddress, LinuxUserName, Timestamp } from "./values.ts";

export const Activation = z.enum(["active", "disabled"]);

/**
 * The fields of a site that an operator writes (lifecycle 3.1, 3.6). A site's secrets are not among the site's fields: the API has a route of its own
 * for credentials.
 */
export const siteFields = {
  name: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[a-z0-9][a-z0-9-]*$/, "must be lower-case letters, digits and hyphens"),
  region_code: z.string().min(1).max(64).describe("The operator's own name of the region; nodes have it too"),
  /** Two spellings of a MAAS address are equal if they differ only in a trailing slash or in /api/2.0 (maas 1.1). */
  api_base_url: z
    .url({ protocol: /^https?$/ })
    .refine(
      (url) => !URL.canParse(url) || (new URL(url).username === "" && new URL(url).password === ""),
      "must hold no user name or password; the credentials route takes the token",
    )
    .describe("The region's address, e.g. http://maas.example:5240/MAAS; a region is one site"),
  pxe_iface: InterfaceName.describe("Interface of the rack controllers by which hosts boot over PXE"),
  pxe_vlan_vid: z.int().min(0).max(4094).describe("VLAN of the PXE network; 0 where it is untagged"),
  node_pxe_iface: InterfaceName.describe("Interface of the hosts that boots over PXE"),
  deploy_user: LinuxUserName.describe("Account that the first boot creates, with the deploy password").default(
    "hpcadmin",
  ),
  deploy_ssh_iface: InterfaceName.describe("Interface of the hosts with the node's address").default("eno8303"),
  upstream_dns_servers: z
    .array(IpAddress)
    .min(1)
    .max(8)
    .describe("DNS servers to which MAAS forwards external names; the probe warns if MAAS's upstream_dns lacks one")
    .default(["1.1.1.1", "8.8.8.8"]),
};
/** How the site treats faulty machines (repair 3). */
const repairFields = {
  auto_repair: z.boolean().describe("Whether a tenant's report of a fault also asks for a repair"),
  repair_attempt_limit: z
    .int()
    .min(1)
    .max(20)
    .describe("How often one machine may be claimed for repair within 30 days"),
};
export const SiteCreate = z.strictObject({
  ...siteFields,
  auto_repair: repairFields.auto_repair.default(false),
  repair_attempt_limit: repairFields.repair_attempt_limit.default(3),
});
export type SiteCreate = z.output<typeof SiteCreate>;

export const SitePatch = z.strictObject({
  name: siteFields.name.optional(),
  region_code: siteFields.region_code.optional(),
  api_base_url: siteFields.api_base_url.optional(),
  pxe_iface: siteFields.pxe_iface.optional(),
  pxe_vlan_vid: siteFields.pxe_vlan_vid.optional(),
  node_pxe_iface: siteFields.node_pxe_iface.optional(),
  deploy_user: LinuxUserName.optional(),
  deploy_ssh_iface: InterfaceName.optional(),
  upstream_dns_servers: z.array(IpAddress).min(1).max(8).optional(),
  auto_repair: repairFields.auto_repair.optional(),
  repair_attempt_limit: repairFields.repair_attempt_limit.optional(),
  status: Activation.optional(),
  default_profile_id: ProfileId.optional(),
});
export type SitePatch = z.output<typeof SitePatch>;

export const Site = z.strictObject({
  id: SiteId,
  ...siteFields,
  ...repairFields,
  status: Activation,
  default_profile_id: ProfileId.nullable(),
  /** The API says only which secrets of a site an operator has written, and never shows their values. */
  credentials: z.strictObject({ maas_token: z.boolean(), power: z.boolean(), deploy_password: z.boolean() }),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type Site = z.output<typeof Site>;

/** The password of the deploy user must be text that a person can type and that the host's crypt(3) accepts, at most 511 bytes. */
const DeployPassword = z
  .string()
  .min(8)
  .max(256)
  .regex(/^\P{Cc}*$/u, "must hold no control characters: nobody could type them at a login")
  .refine((text) => new TextEncoder().encode(text).length <= 511, "must be 511 bytes of UTF-8 at most");

const MaasToken = z.string().regex(/^[^:\s]+:[^:\s]+:[^:\s]+$/, "must be consumer_key:token_key:token_secret");

const BmcDriver = z
  .enum(["ipmi", "redfish"])
  .describe(
    "Protocol by which MAAS and the hub control the BMC; the default is ipmi. With redfish MAAS creates no machine without known interfaces, so the hub boots such a host from the network by its BMC and claims it when it appears in MAAS",
  );

/** A secret of the site that is absent from a request keeps its value (lifecycle 3.5). */
export const SiteCredentials = z
  .strictObject({
    maas_token: MaasToken.describe("API key of a MAAS administrator: consumer_key:token_key:token_secret").optional(),
    power: z
      .strictObject({ user: z.string().min(1).max(64), pass: z.string().min(1).max(256), driver: BmcDriver.optional() })
      .describe("BMC login of all hosts without a power-credential override")
      .optional(),
    deploy_password: DeployPassword.describe("Password of the deploy_user on hosts").optional(),
  })
  .refine((parts) => Object.keys(parts).length > 0, "must name at least one secret");
export type SiteCredentials = z.output<typeof SiteCredentials>;

/** A request that moves a site to another address of the same MAAS region must contain the site's present MAAS token. */
export const SiteMove = z.strictObject({
  api_base_url: siteFields.api_base_url,
  maas_token: MaasToken,
  reason: Reason,
});

/**
 * The checks of the MAAS region that a site's probe makes. A fault in one of the first six checks of a site's probe, `reachable` to `sole_site`, is
 * an error, because it affects the whole site. A fault in a check of the site's probe from `credentials` to `upstream_dns` is a warning, because it
 * affects only some hosts.
 */
const PROBE_CHECKS = [
  "reachable",
  "clock",
  "token",
  "rights",
  "racks",
  "sole_site",
  "credentials",
  "pxe_network",
  "boot_image",
  "scripts",
  "enable_disk_erasing_on_release",
  "hardware_sync_interval",
  "upstream_dns",
] as const;
export const SiteProbe = z.strictObject({
  maas_version: z.string().nullable(),
  /** By how many seconds MAAS's clock is ahead of the hub's clock; null if MAAS's answer had no date. */
  clock_ahead_seconds: z.int().nullable(),
  username: z.string().nullable(),
  is_superuser: z.boolean().nullable(),
  rack_controllers: z.array(z.strictObject({ system_id: z.string(), hostname: z.string() })),
  checks: z.array(
    z.strictObject({
      name: z.enum(PROBE_CHECKS),
      status: z.enum(["ok", "warning", "failed"]),
      /** The profile that a check of the site's probe concerns; null for a check that concerns the whole site. */
      profile: z.string().nullable(),
      message: z.string(),
    }),
  ),
});
export type SiteProbe = z.output<typeof SiteProbe>;

/** What a host of the SKU has at least, besides its GPUs. A host may have more than its SKU says, but not more GPUs. */
export const SkuHardware = z.strictObject({
  /**
   * The installed memory. The Linux kernel keeps a part of the installed memory for itself, so the hub accepts a host that reports up to a tenth less
   * memory than its SKU.
   */
  memory_gib: z.int().min(1).max(1_048_576).exactOptional(),
  disks: z
    .array(z.strictObject({ count: z.int().min(1).max(256), min_gb: z.int().min(1).max(10_000_000) }))
    .max(8)
    .exactOptional(),
  /** How many network interfaces with a link of at least `min_gbps` the host has. */
  nics: z
    .array(z.strictObject({ count: z.int().min(1).max(256), min_gbps: z.int().min(1).max(10_000) }))
    .max(8)
    .exactOptional(),
});
export type SkuHardware = z.output<typeof SkuHardware>;
export const SkuId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, "must be lower-case letters, digits, dots, hyphens");
export const SkuCreate = z.strictObject({
  id: SkuId,
  description: z.string().max(512).default(""),
  gpu_vendor: z.enum(["amd", "nvidia", "none"]),
  gpu_model: z.string().max(64).default(""),
  gpus_total: z.int().min(0).max(64),
  hardware: SkuHardware.default({}).describe(
    "what else a host of the SKU has; the hub does not compare what is missing here",
  ),
});
export type SkuCreate = z.output<typeof SkuCreate>;
/** Nodes and onboardings refer to an SKU by its id, so no request can change the id of an SKU. */
export const SkuPatch = z.strictObject({
  description: z.string().max(512).optional(),
  gpu_vendor: SkuCreate.shape.gpu_vendor.optional(),
  gpu_model: z.string().max(64).optional(),
  gpus_total: SkuCreate.shape.gpus_total.optional(),
  hardware: SkuHardware.optional(),
  status: Activation.optional(),
});
export const Sku = z.strictObject({
  ...SkuCreate.shape,
  status: Activation,
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type Sku = z.output<typeof Sku>;

export const RoceAssignmentRow = z.strictObject({
  hostname: Hostname,
  interface: InterfaceName,
  ipv4_cidr: z.cidrv4(),
});
export type RoceAssignmentRow = z.output<typeof RoceAssignmentRow>;
export type ParsedRoceRow = { readonly row: RoceAssignmentRow } | { readonly fault: string };
/** The hub checks each RoCE row of a request separately, so that an invalid RoCE row does not stop the valid ones. */
const RoceItem = z.union([RoceAssignmentRow, z.unknown()]).transform((item): ParsedRoceRow => {
  const parsed = RoceAssignmentRow.safeParse(item);
  if (parsed.success) return { row: parsed.data };
  const faults = parsed.error.issues.map((issue) =>
    issue.code === "unrecognized_keys"
      ? `has a field that a row has not: ${issue.keys.join(", ")}`
      : `${issue.path.join(".") || "the row"} ${issue.message}`,
  );
  return { fault: faults.join("; ") };
});
export const RoceAssignmentUpsert = z.strictObject({
  items: z
    .array(RoceItem)
    .min(1)
    .max(5000)
    .describe('Rows as {"hostname": "c07u41", "interface": "enp28s0np0", "ipv4_cidr": "172.30.0.1/31"}'),
});
/** The list `items` in the answer has the order in which the request lists the RoCE rows (an interface and its IPv4 address each). */
export const RoceAssignmentWritten = z.strictObject({
  written: z.int(),
  failed: z.int().meta(countsFailures),
  items: z.array(
    z.discriminatedUnion("outcome", [
      z.strictObject({ index: z.int(), outcome: z.enum(["created", "updated", "unchanged"]) }),
      z.strictObject({ index: z.int(), outcome: z.literal("failed"), message: z.string() }),
    ]),
  ),
});
export type RoceAssignmentWritten = z.output<typeof RoceAssignmentWritten>;
export const RoceAssignment = z.strictObject({
  id: z.uuid(),
  site_id: SiteId,
  ...RoceAssignmentRow.shape,
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type RoceAssignment = z.output<typeof RoceAssignment>;

const PowerOverrideSelector = z.enum(["hostname", "ipmi_ip", "pxe_mac"]);
export const PowerOverrideCreate = z.strictObject({
  selector_type: PowerOverrideSelector,
  selector_value: z.string().min(1).max(64),
  user: z.string().min(1).max(64),
  pass: z.string().min(1).max(256),
  driver: BmcDriver.optional(),
});
export type PowerOverrideCreate = z.output<typeof PowerOverrideCreate>;
/**
 * A request cannot change the selector of a BMC login override, which says for which host the login is valid. A login for the BMC of a second host
 * needs a second BMC login override.
 */
export const PowerOverridePatch = z
  .strictObject({
    status: Activation.optional(),
    user: PowerOverrideCreate.shape.user.optional(),
    pass: PowerOverrideCreate.shape.pass.optional(),
    driver: BmcDriver.optional(),
  })
  .refine(
    ({ user, pass, driver }) => (user === undefined) === (pass === undefined) && !(driver && user === undefined),
    {
      message: "a login is both, user and pass; a driver is named with them",
      path: ["user"],
    },
  );
const credentialWarning = {
  reason: z.enum(CREDENTIAL_WARNINGS),
  since: Timestamp,
  message: z.string(),
};
export const PowerOverride = z.strictObject({
  id: z.uuid(),
  site_id: SiteId,
  selector_type: PowerOverrideSelector,
  selector_value: z.string(),
  status: Activation,
  /** The times at which an onboarding last used the BMC login and last failed because of it; null if that never happened. */
  last_used_at: Timestamp.nullable(),
  last_failed_at: Timestamp.nullable(),
  last_failure_code: z.string().nullable(),
  warning: z.strictObject(credentialWarning).nullable(),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type PowerOverride = z.output<typeof PowerOverride>;
export const CredentialWarning = z.strictObject({
  credential: z.enum(CREDENTIALS),
  override_id: z.uuid().nullable(),
  ...credentialWarning,
});
