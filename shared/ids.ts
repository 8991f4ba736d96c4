import { z } from "zod";
import { namedBy } from "./api/extensions.ts";

/** The compiler refuses a SiteId in place of a NodeId, because each kind of id is a type of its own. */
export const NodeId = z
  .uuid()
  .meta(
    namedBy({
      list: "listNodes",
      name: "hostname",
      id: "id",
      unless: { field: "status", values: ["deleted"], shown: "include_deleted" },
    }),
  )
  .brand<"NodeId">();
export type NodeId = z.output<typeof NodeId>;
export const SiteId = z
  .uuid()
  .meta(namedBy({ list: "listMaasSites", name: "name", id: "id" }))
  .brand<"SiteId">();
export type SiteId = z.output<typeof SiteId>;
export const ProfileId = z
  .uuid()
  .meta(namedBy({ list: "listMaasSiteProfiles", name: "name", id: "id" }))
  .brand<"ProfileId">();
export type ProfileId = z.output<typeof ProfileId>;
export const WorkflowId = z.uuid().brand<"WorkflowId">();
export type WorkflowId = z.output<typeof WorkflowId>;
export const BatchId = z.uuid().brand<"BatchId">();
export type BatchId = z.output<typeof BatchId>;
export const TaskId = z.uuid().brand<"TaskId">();
export type TaskId = z.output<typeof TaskId>;
/** The id of a power action, which is a request to switch a machine's power or restart its system. */
export const PowerActionId = z.uuid().brand<"PowerActionId">();
export type PowerActionId = z.output<typeof PowerActionId>;
/** The id of a repair case. */
export const RepairId = z
  .uuid()
  .meta(
    namedBy({
      list: "listRepairs",
      name: "hostname",
      id: "id",
      unless: { field: "state", values: ["closed", "abandoned"] },
    }),
  )
  .brand<"RepairId">();
export type RepairId = z.output<typeof RepairId>;
export const AllocationId = z
  .uuid()
  .meta(
    namedBy({ list: "listAllocations", name: "hostname", id: "id", unless: { field: "status", values: ["ended"] } }),
  )
  .brand<"AllocationId">();
export type AllocationId = z.output<typeof AllocationId>;
export const ExternalAttemptId = z
  .uuid()
  .meta(
    namedBy({
      list: "listExternalAttempts",
      name: "hostname",
      id: "id",
      unless: { field: "status", values: ["completed", "failed_retryable", "abandoned"] },
    }),
  )
  .brand<"ExternalAttemptId">();
export type ExternalAttemptId = z.output<typeof ExternalAttemptId>;
/** The name of an SSH key, or of a group of SSH keys, is unique among those of its tenant. */
export const SshKeyId = z
  .uuid()
  .meta(namedBy({ list: "listSshKeys", name: "name", id: "id" }))
  .brand<"SshKeyId">();
export type SshKeyId = z.output<typeof SshKeyId>;
export const SshKeyGroupId = z
  .uuid()
  .meta(namedBy({ list: "listSshKeyGroups", name: "name", id: "id" }))
  .brand<"SshKeyGroupId">();
export type SshKeyGroupId = z.output<typeof SshKeyGroupId>;
