/**
 * What may differ between a running machine of MAAS and the request that adopts the machine. The adoption request names the kinds of differences that
 * it accepts; for any other difference, the hub refuses the machine. The difference `other_gpus` can occur only when a node of manual mode is bound
 * to a machine, because MAAS's list of machines names no GPUs.
 */
export const ADOPTION_DIFFERENCES = [
  "hardware_sync_off",
  "hardware_sync_stale",
  "hardware_sync_interval",
  "roce_missing",
  "roce_other",
  "other_owner",
  "other_image",
  "other_architecture",
  "locked",
  "ephemeral",
  "powered_off",
  "bmc_unknown",
  "bmc_shared",
  "hardware_uuid_unknown",
  "other_memory",
  "other_gpus",
] as const;
export type AdoptionDifferenceKind = (typeof ADOPTION_DIFFERENCES)[number];

export interface AdoptionDifference {
  readonly kind: AdoptionDifferenceKind;
  readonly expected: string;
  readonly found: string;
  readonly message: string;
}

/**
 * The reasons why the hub refuses to adopt a machine: `difference` stands for a difference that the request does not accept, and no request can
 * accept the other reasons. The refusals `hostname_differs`, `not_in_service`, `host_unknown` and `other_host` can occur only when a node of manual
 * mode is bound to a machine.
 */
export const ADOPTION_REFUSALS = [
  "machine_unknown",
  "machine_gone",
  "not_deployed",
  "machine_unreadable",
  "no_mac_address",
  "hostname_invalid",
  "hostname_ambiguous",
  "hostname_taken",
  "machine_taken",
  "held",
  "hostname_differs",
  "not_in_service",
  "host_unknown",
  "other_host",
  "difference",
] as const;
export type AdoptionRefusalCode = (typeof ADOPTION_REFUSALS)[number];

export interface AdoptionRefusal {
  readonly code: AdoptionRefusalCode;
  readonly message: string;
}
