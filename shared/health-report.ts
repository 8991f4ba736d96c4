import { z } from "zod";

/**
 * What an alert of a health override prevents or changes. An alert may also have classifications that Muster does not know; they inform people and
 * change nothing. The names of the classifications are those of NVIDIA NICo, so that NICo's clients understand Muster's alerts.
 */
export const CLASSIFICATIONS = {
  PreventAllocations: "The node takes no new tenant",
  PreventInstanceDeletion: "The tenant's allocation is not released, unless by force",
} as const;
export type Classification = keyof typeof CLASSIFICATIONS;

/** The source of the health override of a node whose disks MAAS perhaps did not erase as an operation had asked (decision M9). */
export const DISK_ERASE = "disk-erase";
/**
 * The source of the health overrides of all nodes after a restore of the database. After a restore of the database, a person must look at a host
 * before the host gets a new tenant, and before the hub ends an allocation by itself, because the host may have another tenant than the older
 * database says.
 */
export const RESTORED = "restore";
/**
 * True for the source of a health override that Muster sets itself, because Muster does not know whose data is on the host. No person can set a
 * health override with one of the sources `disk-erase` and `restore`, and no override of the mode `replace` hides it.
 */
export const isOwnOverride = (source: string): boolean => source === DISK_ERASE || source === RESTORED;

const Name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "takes letters, digits, dots, dashes and underscores, 63 at most");
const MOST_ALERTS = 20;
const MOST_CLASSIFICATIONS = 20;

export const HealthAlert = z.strictObject({
  id: Name.describe("What is wrong, as one word for programs"),
  target: Name.nullable().describe("The part of the host that the alert is about").default(null),
  message: z.string().trim().min(1).max(1024).describe("What is wrong, for operators"),
  tenant_message: z.string().trim().min(1).max(512).nullable().describe("What the tenant may know").default(null),
  classifications: z.array(Name).max(MOST_CLASSIFICATIONS).describe("What the alert prevents, and further words"),
});
export type HealthAlert = z.output<typeof HealthAlert>;
export const HealthAlerts = z.array(HealthAlert).max(MOST_ALERTS);

export const OVERRIDE_MODES = ["merge", "replace"] as const;
export type OverrideMode = (typeof OVERRIDE_MODES)[number];

interface Template {
  readonly source: string;
  readonly mode: OverrideMode;
  /** The alert that a health override made from the template raises; null for the template that says that the node is healthy. */
  readonly alert: {
    readonly id: string;
    readonly target: string | null;
    readonly classifications: readonly string[];
  } | null;
}

const alert = (id: string, target: string | null, ...classifications: readonly string[]) => ({
  id,
  target,
  classifications,
});
const PA = "PreventAllocations";
const SILENT = "SuppressExternalAlerting";

/**
 * The eleven health override templates of NICo's command line, with one difference: in NICo four templates share the source `manual-maintenance`, so
 * that an override by one of them silently replaces an override by another. In Muster, each health override template has a source of its own.
 */
export const HEALTH_TEMPLATES = {
  HostUpdate: { source: "host-update", mode: "merge", alert: alert("HostUpdateInProgress", "admin-cli", PA, SILENT) },
  InternalMaintenance: {
    source: "maintenance",
    mode: "merge",
    alert: alert("Maintenance", null, PA, SILENT, "ExcludeFromStateMachineSla"),
  },
  OutForRepair: {
    source: "out-for-repair",
    mode: "merge",
    alert: alert("Maintenance", "OutForRepair", PA, SILENT, "ExcludeFromStateMachineSla"),
  },
  Degraded: { source: "degraded", mode: "merge", alert: alert("Maintenance", "Degraded", PA, SILENT) },
  Validation: { source: "validation", mode: "merge", alert: alert("Maintenance", "Validation", SILENT) },
  SuppressExternalAlerting: {
    source: "suppress-paging",
    mode: "merge",
    alert: alert("Maintenance", "SuppressExternalAlerting", SILENT),
  },
  MarkHealthy: { source: "mark-healthy", mode: "replace", alert: null },
  StopRebootForAutomaticRecoveryFromStateMachine: {
    source: "stop-reboot",
    mode: "merge",
    alert: alert("Maintenance", "admin-cli", "StopRebootForAutomaticRecoveryFromStateMachine"),
  },
  TenantReportedIssue: {
    source: "tenant-reported-issue",
    mode: "merge",
    alert: alert("TenantReportedIssue", "tenant-reported", PA, SILENT),
  },
  RequestRepair: {
    source: "repair-request",
    mode: "merge",
    alert: alert("RequestRepair", "repair-requested", PA, SILENT),
  },
  RequestOnlineRepair: {
    source: "request-online-repair",
    mode: "merge",
    alert: alert("RequestOnlineRepair", "request-online-repair", PA, SILENT, "PreventInstanceDeletion"),
  },
} as const satisfies Record<string, Template>;
export type HealthTemplate = keyof typeof HEALTH_TEMPLATES;
export const HEALTH_TEMPLATE_NAMES = Object.keys(HEALTH_TEMPLATES) as [HealthTemplate, ...HealthTemplate[]];
