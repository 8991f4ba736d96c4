import { DECOMMISSION_MODES, type DecommissionMode } from "./workflow-status.ts";

/**
 * Where a host and its disks go after the operation that a sanitization record describes; a certificate of NIST SP 800-88 needs this destination. The
 * destination `fleet` means that the host stays in Muster for its next tenant. The destination `maas` means that MAAS has the machine again. The
 * destination `operator` means that Muster no longer manages the host, and that the host's operating system keeps running. The destination `unknown`
 * means that the hub no longer knows the operation of the record.
 */
export const DESTINATIONS = ["fleet", "maas", "operator", "unknown"] as const;
export type Destination = (typeof DESTINATIONS)[number];

const BY_MODE: Readonly<Record<DecommissionMode, Destination>> = {
  drain: "fleet",
  remove: "operator",
  release: "maas",
  soft_reset: "fleet",
  reimage: "fleet",
  storage_cleanup: "fleet",
  full_decommission: "maas",
  reinstall: "fleet",
};

export const DESTINATION_TEXTS: Readonly<Record<Destination, string>> = {
  fleet: "stays in the fleet, for the next tenant",
  maas: "goes back to MAAS",
  operator: "leaves Muster, and its system keeps running",
  unknown: "unknown",
};

/** `mode` is the decommission's mode in a sanitization record, or `unknown`. */
export function destinationOf(mode: string): Destination {
  const known = DECOMMISSION_MODES.find((one) => one === mode);
  return known === undefined ? "unknown" : BY_MODE[known];
}
