import { z } from "zod";

/**
 * The statuses of an attempt to provision a host externally, as the API shows them. The status `failed_retryable` means that the attempt has failed
 * and that somebody must begin another attempt, as for a failed workflow.
 */
const EXTERNAL_STATUSES = ["begun", "in_progress", "verifying", "completed", "failed_retryable", "abandoned"] as const;
export const ExternalStatus = z.enum(EXTERNAL_STATUSES);
export type ExternalStatus = z.output<typeof ExternalStatus>;

/**
 * The states of an attempt to provision a host externally, as the database stores them. Four states are `failed_retryable` in the API: `failed` by
 * the external system's own word, `lost` because its lease ran out, `late` because its deadline passed, and `unverified` because the host was not
 * ready in time after its completion.
 */
export const EXTERNAL_STATES = [
  "begun",
  "in_progress",
  "verifying",
  "completed",
  "failed",
  "lost",
  "late",
  "unverified",
  "abandoned",
] as const;
export type ExternalState = (typeof EXTERNAL_STATES)[number];

export const STATUS_OF_STATE: Readonly<Record<ExternalState, ExternalStatus>> = {
  begun: "begun",
  in_progress: "in_progress",
  verifying: "verifying",
  completed: "completed",
  failed: "failed_retryable",
  lost: "failed_retryable",
  late: "failed_retryable",
  unverified: "failed_retryable",
  abandoned: "abandoned",
};

/** Who runs the network of a host: Muster sets the RoCE addresses by MAAS, or an operator's own system sets up the network. */
export const NETWORK_OWNERS = ["operator", "muster"] as const;
export type NetworkOwner = (typeof NETWORK_OWNERS)[number];
