import { z } from "zod";
import { NodeId, TaskId } from "../../../shared/ids.ts";

/** A stage clears a fact by writing null, which JSON keeps; `undefined` would be lost on the way. */
const fact = <T extends z.ZodType>(schema: T) => schema.nullable().optional();

export const DeployFailure = z.object({
  reason: z.enum(["failed", "timeout"]),
  maas_status: z.number(),
  status_message: z.string(),
  error_description: z.string(),
  /** Written by classify_deploy_failure (decision M11). */
  classified_as: z.enum(["datasource_like", "generic"]).optional(),
});
export type DeployFailure = z.output<typeof DeployFailure>;

/** Written before the host's BMC is asked for anything: from then on the host may boot from the network. */
export const Discovery = z.object({
  why: z.string(),
  triggered_at: z.iso.datetime(),
  /** System ids that MAAS had before the host was off: one of them is not what its network boot has made of it. */
  known: z.array(z.string()),
  /** Since when the host is known to have been off for it; from then on `known` stays. */
  off_at: fact(z.iso.datetime()),
  /** When the host was last seen on after it. Until then no new machine is taken for the host. */
  booted_at: fact(z.iso.datetime()),
  /** When each machine that MAAS has had since was first seen. */
  seen: z.record(z.string(), z.iso.datetime()),
});
export type Discovery = z.output<typeof Discovery>;

/**
 * Facts that the onboarding gathers (lifecycle 4.5). Paths of secrets, never secrets. Names of earlier versions are dropped at the parser;
 * a new fact must be optional, because rows written before it go on (decision W3).
 */
export const OnboardState = z.object({
  maas_username: fact(z.string()),
  maas_version: fact(z.string()),
  power_credentials_path: fact(z.string()),
  power_credentials_selector: fact(z.enum(["pxe_mac", "ipmi_ip", "hostname", "default"])),
  maas_system_id: fact(z.string()),
  machine_created: fact(z.boolean()),
  /** It has failed its hardware tests, and is to be tested again whatever it is by now. */
  commission_again: fact(z.boolean()),
  create_rejections: fact(z.number()),
  /** Creates that MAAS took and no machine came of. */
  create_unusable: fact(z.number()),
  discovery: fact(Discovery),
  /** Of the host's power-cycle by its BMC, since the onboarding was last taken up. */
  discovery_power: fact(z.object({ off_seen: z.boolean(), booted_at: z.iso.datetime().nullable() })),
  boss_disk_id: fact(z.number()),
  roce_applied: fact(z.number()),
  roce_assigned: fact(z.number()),
  roce_warnings: fact(z.array(z.string())),
  /** STATIC links of others beside a row's. */
  roce_foreign: fact(z.array(z.string())),
  pxe_interface: fact(z.string()),
  node_id: fact(NodeId),
  /** Provisioning attempt that the newest token and user-data belong to. */
  generation: fact(z.number()),
  user_data_sha256: fact(z.string()),
  /** Generation for which the deploy call was about to be made: from then on a deploying machine of ours is ours. */
  deploy_intent: fact(z.number()),
  awaits_deploy_place: fact(z.boolean()),
  /** Generation for which the deploy was seen to have started. */
  deploy_started: fact(z.number()),
  deployed_at: fact(z.string()),
  deploy_ip_addresses: fact(z.array(z.string())),
  deploy_failure: fact(DeployFailure),
  /** How often the events of the failed deploy were asked for in vain. */
  events_unread: fact(z.number()),
  datasource_retries: fact(z.number()),
  abort_requested_at: fact(z.string()),
  last_sync_at_deploy: fact(z.string()),
  hw_sync_waits_for: fact(z.enum(["agent", "token", "task"])),
  reseed_task_id: fact(TaskId),
  reseeds: fact(z.number()),
  token_refreshes: fact(z.number()),
});
export type OnboardState = z.output<typeof OnboardState>;
