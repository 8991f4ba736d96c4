import { DECOMMISSION_MODES, type DecommissionMode } from "./workflow-status.ts";

/**
 * Where a host and its media go after the operation of a sanitization record, which a certificate of NIST SP 800-88 names. `fleet`: the host stays in
 * Muster for its next tenant. `maas`: MAAS has the machine again. `operator`: Muster no longer manages the host, and the host's system keeps running.
 * `unknown`: the hub no longer knows the operation.
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

/** `mode` is the mode of a record's operation, which may be `unknown`. */
export function destinationOf(mode: string): Destination {
  const known = DECOMMISSION_MODES.find((one) => one === mode);
  return known === undefined ? "unknown" : BY_MODE[known];
}
