import { z } from "zod";
import { BatchId, NodeId, SiteId, WorkflowId } from "../ids.ts";
import { NamedDisks } from "../tasks/storage-cleanup.ts";
import { DECOMMISSION_MODES, DECOMMISSION_STAGES, WorkflowStatus } from "../workflow-status.ts";
import { Timestamp } from "./values.ts";
import { idOfHostsWork, StageEvent, workflowProgress } from "./workflow-progress.ts";

export const DecommissionId = idOfHostsWork("listDecommissions", "decommission_id");

export const Reason = z.string().min(1).max(256);
/** How long a decommission waits for a disconnected agent before the decommission stops until a person decides how it continues. */
const agent_wait_seconds = z.int().min(0).max(86_400).default(900);

/** A drain takes a node in service to the status `retired` (state model 3.2). */
export const DrainCreate = z.strictObject({
  reason: Reason,
  /** How long logged-in users have to leave a host that is being drained. */
  deadline_seconds: z.int().min(0).max(86_400).default(3_600),
  /** If `force` is true, the drain ends the login sessions that are still open after the users' time to leave. */
  force: z.boolean().default(false),
  force_release_allocation: z
    .boolean()
    .describe("Take the node from its tenant: the open allocation ends. Without it, an allocated node is not drained")
    .optional(),
  agent_wait_seconds,
});
export type DrainCreate = z.output<typeof DrainCreate>;

/** A remove takes a retired node to the status `deleted`. */
export const RemoveCreate = z.strictObject({ reason: Reason, agent_wait_seconds });
export type RemoveCreate = z.output<typeof RemoveCreate>;

/** A release gives a machine back to MAAS: a retired node's machine, or a machine that a removed node left deployed (lifecycle 6.4). */
export const ReleaseCreate = z.strictObject({ reason: Reason });
export type ReleaseCreate = z.output<typeof ReleaseCreate>;

/** Which storage a soft reset cleans (lifecycle 5.5): local folders, tenants' Weka mounts, or both. */
const StorageScope = z.enum(["none", "local", "weka", "all"]);
/** How MAAS erases a machine's disks when MAAS releases the machine (lifecycle 5.3). */
const Erase = z.enum(["none", "quick", "secure"]);
/** A decommission's `mode` (lifecycle 5.1) says whether the node is prepared for the next tenant, or leaves the fleet with its host. */
export const DecommissionCreate = z.discriminatedUnion("mode", [
  z.strictObject({
    mode: z.literal("soft_reset").describe("Clean the node and keep its system"),
    storage_cleanup: StorageScope.describe("Which storage is cleaned: local folders, Weka mounts, or both").default(
      "all",
    ),
    reason: Reason,
    agent_wait_seconds,
  }),
  z.strictObject({
    mode: z.literal("reimage").describe("Release the node's machine and deploy it again"),
    erase: Erase.describe("How MAAS erases the disks before the new deploy").default("secure"),
    reason: Reason,
    agent_wait_seconds,
  }),
  z.strictObject({
    mode: z
      .literal("full_decommission")
      .describe("Drain the node, release and power off its machine, and remove the node"),
    erase: Erase.describe("How MAAS erases the disks when it releases the machine").default("secure"),
    storage_cleanup: StorageScope.describe("Which storage the agent cleans before the release").default("all"),
    remove_maas_record: z
      .boolean()
      .describe("Also delete the machine in MAAS. Without it, the machine stays in MAAS")
      .default(false),
    force_release_allocation: z
      .boolean()
      .describe("Take the node from its tenant: the open allocation ends. Without it, an allocated node is refused")
      .optional(),
    reason: Reason,
    agent_wait_seconds,
  }),
]);
export type DecommissionCreate = z.output<typeof DecommissionCreate>;

/** The fields of a request that cleans the storage of one node or of a batch of nodes, all without a tenant (lifecycle 5.5). */
export const storageCleanupFields = {
  reason: Reason,
  scope: z
    .enum(["local", "weka", "all"])
    .describe("Which storage is cleaned: local folders, Weka mounts, or both")
    .default("all"),
  agent_wait_seconds,
};
/** Only the request for one node names disks, because a disk is in one host. */
export const StorageCleanupCreate = z
  .strictObject({
    ...storageCleanupFields,
    purge_disks: NamedDisks.describe(
      "DESTROYS DATA: serial numbers of free data disks of this host, which the agent purges by the disk's own sanitize or format command; not with the scope weka",
    ).optional(),
  })
  .refine(({ scope, purge_disks }) => scope !== "weka" || (purge_disks ?? []).length === 0, {
    message: "must be empty, because the scope weka cleans no disks",
    path: ["purge_disks"],
  });
export type StorageCleanupCreate = z.output<typeof StorageCleanupCreate>;

export const DecommissionCreated = z.strictObject({
  decommission_id: WorkflowId,
  node_id: NodeId,
  mode: z.enum(DECOMMISSION_MODES),
  status: WorkflowStatus,
  /**
   * An effect of the decommission that the caller of the API may not expect. `warning` of a decommission is null if the decommission has no
   * unexpected effect.
   */
  warning: z.string().nullable(),
});
export type DecommissionCreated = z.output<typeof DecommissionCreated>;

export const Decommission = z.strictObject({
  decommission_id: WorkflowId,
  batch_id: BatchId.nullable(),
  node_id: NodeId,
  site_id: SiteId.nullable(),
  hostname: z.string(),
  maas_system_id: z.string().nullable(),
  mode: z.enum(DECOMMISSION_MODES),
  reason: z.string(),
  /** When, by whom and why a decommission was allowed to continue without the node's agent (lifecycle 5.8). */
  forced_at: Timestamp.nullable(),
  forced_by: z.string().nullable(),
  forced_reason: z.string().nullable(),
  ...workflowProgress,
  current_stage: z.enum(DECOMMISSION_STAGES),
});
export type Decommission = z.output<typeof Decommission>;
export const DecommissionDetail = z.strictObject({ ...Decommission.shape, events: z.array(StageEvent) });
export type DecommissionDetail = z.output<typeof DecommissionDetail>;
