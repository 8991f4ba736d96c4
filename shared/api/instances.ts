import { z } from "zod";
import { AllocationId, NodeId, SiteId } from "../ids.ts";
import { Labels } from "./allocations.ts";
import { Reason } from "./decommissions.ts";
import { NodeLocation } from "./locations.ts";
import { PowerAction } from "./power.ts";
import { Timestamp } from "./values.ts";

/**
 * The statuses of an instance, which is what a tenant sees of an allocation. The names of an instance's statuses are those of NVIDIA NICo; only
 * `Stopped` is Muster's own.
 */
export const INSTANCE_STATUSES = [
  "Pending",
  "Provisioning",
  "Ready",
  "Repairing",
  "Rebooting",
  "Stopped",
  "Terminating",
  "Error",
] as const;
export const InstanceStatus = z.enum(INSTANCE_STATUSES);
export type InstanceStatus = z.output<typeof InstanceStatus>;

/** An open allocation as its tenant sees it. The hub computes the status of a tenant's instance at each request, and stores it nowhere. */
export const Instance = z.strictObject({
  /** The id of the allocation, which stays the same when the host is installed again. */
  id: AllocationId,
  tenant: z.string(),
  site_id: SiteId.nullable(),
  node_id: NodeId,
  hostname: z.string(),
  status: InstanceStatus,
  /** The reason for the status of a tenant's instance, as a sentence for the tenant. */
  status_reason: z.string(),
  /** The next action if the status of the instance calls for one, for example a verb that the tenant may use. */
  next_action: z.string().nullable(),
  labels: z.record(z.string(), z.string()),
  login_user: z.string(),
  host: z.string().nullable(),
  port: z.int(),
  sku_id: z.string().nullable(),
  /** Where the host stands, as far as operators have entered it, and its availability zone in MAAS. */
  location: NodeLocation,
  zone: z.string().nullable(),
  /** The power state of the machine that MAAS has last reported; null for a host without a machine in MAAS. */
  power_state: z.string().nullable(),
  /** The newest request for the machine's power. */
  power_action: PowerAction.nullable(),
  created_at: Timestamp,
  active_at: Timestamp.nullable(),
  ends_at: Timestamp.nullable(),
});
export const InstanceDetail = z.strictObject({ ...Instance.shape, ssh_keys: z.array(z.string()) });

/** A change of an instance. The labels in a request to change a tenant's instance replace all labels that the instance has. */
export const InstancePatch = z.strictObject({ labels: Labels });

/** A request to install the host of an instance anew. */
export const InstanceReinstall = z.strictObject({
  reason: Reason,
  acknowledge_data_loss: z
    .boolean()
    .refine((value) => value, "must be true, because all that is on the disk of the system is lost")
    .describe(
      "DESTROYS DATA: all that is on the disk of the system is lost, also the home folder. Must be true. Data disks are not erased",
    ),
});

/** The statuses of a machine, with the words of NVIDIA NICo. */
const MACHINE_STATUSES = [
  "Initializing",
  "Ready",
  "InUse",
  "Reset",
  "Maintenance",
  "Error",
  "Decommissioning",
  "Decommissioned",
] as const;
export const MachineStatus = z.enum(MACHINE_STATUSES);
export type MachineStatus = z.output<typeof MachineStatus>;

export const StatusHistory = z.strictObject({
  node_id: NodeId,
  /** True if the status history lacks older entries, because the answer leaves them out or retention has removed them. */
  cut: z.boolean(),
  /** The oldest entry first. */
  entries: z.array(z.strictObject({ status: MachineStatus, at: Timestamp, message: z.string() })),
});
