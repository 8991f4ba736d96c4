import type { SiteLogin } from "../../db/queries/decommission-secrets.ts";
import { sameAddress } from "../../maas/power-address.ts";

export interface KnownHost {
  readonly hostname: string;
  /** The BMC address and the MAC address in the request for the host's last onboarding. */
  readonly onboarded: { readonly ipmiIp: string; readonly pxeMac: string | null } | null;
  /** The node's machine as MAAS shows it now; null if MAAS has no machine with the system id. */
  readonly machine: {
    readonly systemId: string;
    readonly hostname: string;
    /** The address of the machine's BMC; empty if MAAS does not know the address. */
    readonly bmcAddress: string;
    readonly macAddresses: readonly string[];
  } | null;
}

export type JudgedLogin = Pick<SiteLogin, "selectorType" | "selectorValue" | "isNewer">;

/**
 * The verdict `other` means that nothing connects the BMC login with the host. The verdict `kept` means that the BMC login looks like the host's, and
 * gives the reason to keep the login.
 */
export type LoginVerdict =
  | { readonly kind: "other" }
  | { readonly kind: "own" }
  | { readonly kind: "kept"; readonly reason: string };

/** True if the selector of the BMC login names the host as Muster or MAAS knows the host. */
export function looksLike({ selectorType, selectorValue }: JudgedLogin, host: KnownHost): boolean {
  const { hostname, onboarded, machine } = host;
  const names = {
    hostname: [hostname],
    ipmi_ip: [onboarded?.ipmiIp, machine?.bmcAddress],
    pxe_mac: [onboarded?.pxeMac, ...(machine?.macAddresses ?? [])],
  }[selectorType];
  return names.some((name) => Boolean(name) && sameAddress(selectorValue, name ?? ""));
}

/**
 * Decides whether a BMC login belongs to no other host than the host of a decommission. A BMC address alone proves nothing, because hosts may have
 * swapped addresses since their onboardings. A BMC login belongs to the host if MAAS shows the login's selector at the node's machine, and no other
 * host has that selector.
 */
export function judgeLogin(login: JudgedLogin, host: KnownHost, otherHosts: readonly string[]): LoginVerdict {
  if (!looksLike(login, host)) return { kind: "other" };
  const kept = (reason: string): LoginVerdict => ({ kind: "kept", reason });
  if (login.isNewer) return kept("it was written or changed after the decommission was requested");
  const { machine } = host;
  if (machine === null)
    return kept("the node's machine is not in MAAS, so nothing proves that the login is this host's");
  const doubt = doubtOf(login, machine);
  if (doubt !== null) return kept(`${doubt}, so the login may be another host's`);
  if (otherHosts.length > 0) return kept(`it may be the login of ${otherHosts.join(", ")}`);
  return { kind: "own" };
}

function doubtOf(
  { selectorType, selectorValue }: JudgedLogin,
  machine: NonNullable<KnownHost["machine"]>,
): string | null {
  const { systemId, hostname, bmcAddress, macAddresses } = machine;
  switch (selectorType) {
    case "hostname":
      return sameAddress(hostname, selectorValue) ? null : `machine ${systemId} is named ${hostname} in MAAS`;
    case "ipmi_ip":
      if (bmcAddress === "") return `MAAS does not know the address of the BMC of machine ${systemId}`;
      return sameAddress(bmcAddress, selectorValue)
        ? null
        : `the BMC of machine ${systemId} has the address ${bmcAddress} in MAAS`;
    case "pxe_mac":
      return macAddresses.some((mac) => sameAddress(mac, selectorValue))
        ? null
        : `machine ${systemId} has no interface with this MAC address in MAAS`;
  }
}
