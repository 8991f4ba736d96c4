import type { ApiRole } from "./roles.ts";

/** What a caller of the API may do. Each route of the API names the one right that a caller of the route needs (decision I3). */
export const RIGHTS = {
  use_hub: "ask who one is, and whether the hub works",
  read_nodes: "read the nodes and SKUs",
  read_fleet:
    "read sites, profiles, operations, tasks and drift, and for all sites also webhooks, keys and diagnostics",
  read_events: "read and follow domain events",
  read_allocations: "read allocations, SSH keys of tenants and sanitization records",
  read_repairs: "read the repairs of machines",
  repair_nodes: "claim a machine for its repair, and report what came of it",
  report_signals: "report readiness signals, get the URLs for cloud-init's reports, and wake a site's watcher",
  provision_hosts: "begin attempts of external systems to provision hosts, and report about them",
  operate_nodes:
    "begin and change operations, change nodes, tasks, breakers and repairs, and validate sanitization records",
  allocate:
    "create, grant and end allocations, change their labels and the SSH keys of tenants, switch the power of machines, and install them anew",
  allocate_unhealthy: "allocate a named node although a health override keeps tenants off it",
  configure_sites: "change sites, profiles, credentials, RoCE rows and BMC logins",
  read_audit: "read the audit",
  manage_people: "create, change and revoke tokens, and end sessions",
  manage_hub: "change webhooks, SKUs and the hub's keys",
} as const;
export type Right = keyof typeof RIGHTS;
export const RIGHT_NAMES = Object.keys(RIGHTS) as [Right, ...Right[]];

const READS = ["use_hub", "read_nodes", "read_fleet", "read_events", "read_allocations", "read_repairs"] as const;
const OPERATES = [
  ...READS,
  "repair_nodes",
  "report_signals",
  "provision_hosts",
  "operate_nodes",
  "allocate",
  "read_audit",
] as const;

/** The rights of each role. A right that is not in a role's list is refused. */
export const RIGHTS_OF: Readonly<Record<ApiRole, readonly Right[]>> = {
  viewer: READS,
  operator: OPERATES,
  admin: [...OPERATES, "allocate_unhealthy", "configure_sites", "manage_people", "manage_hub"],
  provisioner: ["use_hub", "read_nodes", "read_events", "report_signals", "provision_hosts"],
  tenant: ["use_hub", "read_events", "read_allocations"],
  repair: ["use_hub", "read_events", "read_allocations", "read_repairs", "repair_nodes"],
};

export const hasRight = (role: ApiRole, right: Right): boolean => RIGHTS_OF[role].includes(right);

/** A caller may give others only rights that the caller has. */
export const mayGrant = (role: ApiRole, granted: ApiRole): boolean =>
  RIGHTS_OF[granted].every((right) => hasRight(role, right));

export const rolesWith = (right: Right): ApiRole[] =>
  (Object.keys(RIGHTS_OF) as ApiRole[]).filter((role) => hasRight(role, right));
