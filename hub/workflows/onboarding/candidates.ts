import { type Failure, failure } from "../../../shared/failures.ts";
import type { MaasPort } from "../../maas/port.ts";
import { sameAddress } from "../../maas/power-address.ts";

interface Host {
  readonly hostname: string;
  readonly ipmiIp: string;
  readonly pxeMac: string | null;
}

/** Maps the system id of each machine to its BMC address, or to "" if MAAS knows no BMC address. */
export type Powers = ReadonlyMap<string, string>;

export interface Candidate {
  readonly systemId: string;
  readonly by: readonly ("hostname" | "BMC address" | "MAC address")[];
  readonly bmc: string;
}

export async function findCandidates(maas: MaasPort, host: Host, powers: Powers): Promise<Candidate[]> {
  const found = new Map<string, Candidate["by"]>();
  const add = (systemId: string, by: Candidate["by"][number]): void => {
    found.set(systemId, [...(found.get(systemId) ?? []), by]);
  };
  for (const machine of await maas.findByHostname(host.hostname)) add(machine.systemId, "hostname");
  for (const [systemId, address] of powers) if (sameAddress(address, host.ipmiIp)) add(systemId, "BMC address");
  if (host.pxeMac !== null)
    for (const machine of await maas.findByMac(host.pxeMac)) add(machine.systemId, "MAC address");
  return [...found].map(([systemId, by]) => ({ systemId, by, bmc: powers.get(systemId) ?? "" }));
}

/** Each machine that may be the requested host, with the known facts for the person who decides. */
export type Told = readonly (readonly [systemId: string, known: readonly string[]])[];
export type Choice =
  | { readonly kind: "none" }
  | { readonly kind: "one"; readonly systemId: string; readonly by: Candidate["by"] }
  | { readonly kind: "ambiguous"; readonly told: Told };

/**
 * Chooses the one machine in MAAS that is certainly the requested host, or none (lifecycle 4.16). If the onboarding took a machine with another BMC,
 * it would overwrite the BMC address in MAAS and power-cycle the wrong host. The onboarding takes a machine by its name or MAC address only if MAAS
 * knows no BMC of the machine.
 */
export function choose(candidates: readonly Candidate[]): Choice {
  const [one, ...others] = candidates;
  if (one === undefined) return { kind: "none" };
  if (others.length === 0 && (one.bmc === "" || one.by.includes("BMC address"))) {
    return { kind: "one", systemId: one.systemId, by: one.by };
  }
  const told = candidates.map(({ systemId, by, bmc }) => [systemId, [...by, `BMC ${bmc || "unknown"}`]] as const);
  return { kind: "ambiguous", told };
}

/** The failure for ambiguous candidates: a person decides which machine is the host, by correcting the machines in MAAS. */
export function conflicting({ hostname, ipmiIp }: Host, told: Told): Failure {
  const list = told.map(([systemId, known]) => `${systemId} (${known.join(", ")})`);
  const machines = list.length === 1 ? "machine" : "machines";
  const message = `MAAS has ${list.length} ${machines} that may be ${hostname} with BMC ${ipmiIp}: ${list.join("; ")}. In MAAS, give the machine of this host that BMC address and remove or rename the others, then resume.`;
  return failure("state_ambiguity", "conflicting_candidates", message, { candidates: list.slice(0, 20) });
}
