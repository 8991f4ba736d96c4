import { z } from "zod";
import { NodeId, TaskId } from "../../../shared/ids.ts";
import { DeployedImage } from "../../db/queries/deployed-images.ts";

/** A stage clears a fact of its state by writing null, because JSON keeps null and drops `undefined`. */
export const fact = <T extends z.ZodType>(schema: T) => schema.nullable().optional();

const DeployFailure = z.object({
  reason: z.enum(["failed", "timeout"]),
  maas_status: z.number(),
  status_message: z.string(),
  error_description: z.string(),
  /** The kind of the deploy failure, which the stage `classify_deploy_failure` finds (decision M11). */
  classified_as: z.enum(["datasource_like", "generic"]).optional(),
});
export type DeployFailure = z.output<typeof DeployFailure>;

/**
 * The facts that the provisioning stages read and write (lifecycle 4.5). The parser of `ProvisionState` drops facts that only earlier versions of
 * Muster knew. Each fact in `ProvisionState` is optional, because a newer hub continues workflows of an older hub (decision W3).
 */
export const ProvisionState = z.object({
  /** A machine that Muster's MAAS user owns and that the workflow meant to deploy is the workflow's own. */
  maas_username: fact(z.string()),
  maas_system_id: fact(z.string()),
  boss_disk_id: fact(z.number()),
  roce_applied: fact(z.number()),
  roce_assigned: fact(z.number()),
  roce_warnings: fact(z.array(z.string())),
  /** STATIC links in MAAS that Muster did not make, on interfaces that the host's RoCE rows name. */
  roce_foreign: fact(z.array(z.string())),
  pxe_interface: fact(z.string()),
  node_id: fact(NodeId),
  /** The provisioning attempt to which the workflow's newest token and user-data belong. */
  generation: fact(z.number()),
  user_data_sha256: fact(z.string()),
  /**
   * The node's generation for which the workflow was about to ask MAAS for a deploy. Once `deploy_intent` is stored, a deploy of the machine by
   * Muster's MAAS user counts as the workflow's own.
   */
  deploy_intent: fact(z.number()),
  awaits_deploy_place: fact(z.boolean()),
  /** The node's generation for which the workflow has seen that MAAS started the deploy. */
  deploy_started: fact(z.number()),
  deployed_at: fact(z.string()),
  deployed_image: fact(DeployedImage),
  deploy_ip_addresses: fact(z.array(z.string())),
  deploy_failure: fact(DeployFailure),
  /** The number of times that MAAS did not return the events of the failed deploy. */
  events_unread: fact(z.number()),
  datasource_retries: fact(z.number()),
  abort_requested_at: fact(z.string()),
  last_sync_at_deploy: fact(z.string()),
  hw_sync_waits_for: fact(z.enum(["agent", "token", "task"])),
  reseed_task_id: fact(TaskId),
  reseeds: fact(z.number()),
  token_refreshes: fact(z.number()),
});
export type ProvisionState = z.output<typeof ProvisionState>;
