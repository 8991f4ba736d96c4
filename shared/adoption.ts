/**
 * What may differ between a running machine of MAAS and the request that adopts the machine. The request names the kinds of differences that it
 * accepts; any other difference refuses the machine. Only a binding of a node of manual mode can find `other_gpus`, because MAAS's list of machines
 * names no GPUs.
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
 * Why a machine cannot be adopted, whatever the request accepts; `difference` is a difference that the request does not accept. Only a binding of a
 * node of manual mode can be refused for `hostname_differs`, `not_in_service`, `host_unknown` and `other_host`.
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
